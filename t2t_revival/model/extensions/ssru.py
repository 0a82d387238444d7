"""A decoder without self-attention, whose state does not grow: hparam `decoder_self_attention=ssru`.

Self-attention reads the keys and values of all earlier positions at each new one. The simpler simple
recurrent unit keeps a vector of them instead:

    f_t = sigmoid(x_t W_f + b_f)
    c_t = f_t * c_(t-1) + (1 - f_t) * x_t W,    c_0 = 0
    output_t = max(0, c_t)

Products of matrices need no earlier position and are computed for all at once; only the second line is
computed position by position.

Reference: Kim et al., 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine
Translation", section 3.2.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from t2t_revival.model.embedding import positions_in
from t2t_revival.model.incremental import Step, empty_cache, next_bias, step
from t2t_revival.model.layer import ConfiguredLayer, LayerConfig, SideBySide
from t2t_revival.model.products import matmul


@keras.saving.register_keras_serializable("t2t_revival")
class SSRU(ConfiguredLayer):
    """The simpler simple recurrent unit, in the place of a decoder's self-attention.

    Example:
        output = SSRU(LayerConfig(hidden_size=512))(x)    # [batch, length, 512] -> the same shape

    Reference: Kim et al., 2019, section 3.2.
    """

    def __init__(self, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.hidden_size = config.hidden_size

    def build(self, input_shape: Any = None) -> None:
        columns = self.hidden_size, self.hidden_size  # W_f and W
        shape = self.hidden_size, sum(columns)
        self.kernel = self.add_weight(name="kernel", shape=shape, initializer=SideBySide(columns))
        self.forget_bias = self.add_weight(name="forget_bias", shape=shape[:1], initializer="zeros")
        super().build()

    def call(
        self, x: Any, mask: Any = None, training: bool = False, return_attention_scores: bool = False
    ) -> Any:
        """[batch, length, hidden] -> the same shape; nothing is dropped in `training`.

        With a `mask` of segments, bool [batch, length, length], the state is 0 before the first position of
        each; a mask of padding changes nothing. With `return_attention_scores`,
        also `None`: there are no attention weights.
        """
        gates = self.gate(ops.reshape(x, (-1, self.hidden_size)))
        by_position = [ops.transpose(ops.reshape(gate, ops.shape(x)), (1, 0, 2)) for gate in gates]
        is_packed = mask is not None and len(mask.shape) == 3
        kept = ops.transpose(positions_in(mask)[:, 1:] > 0) if is_packed else None
        forget, new = (ops.cast(gate, "float32") for gate in by_position)
        states = recurrence(forget, new, kept)
        output = ops.relu(ops.cast(ops.transpose(states, (1, 0, 2)), self.compute_dtype))
        return (output, None) if return_attention_scores else output

    def gate(self, rows: Any) -> tuple[Any, Any]:
        """Returns f and x W of rows x, [positions, hidden], each of their shape."""
        forget, new = ops.split(matmul(rows, self.kernel), 2, axis=1)
        return ops.sigmoid(ops.add(forget, ops.cast(self.forget_bias, forget.dtype))), new


@empty_cache.register
def _(unit: SSRU, batch: Any, beams: Any, positions: int) -> Any:
    """Returns c before the first position, [batch, beams, hidden], for any number of positions."""
    return ops.zeros((batch, beams, unit.hidden_size), dtype=unit.compute_dtype)


@next_bias.register
def _(unit: SSRU, bias: Any, batch: Any, beams: Any, cache: Any) -> Any:
    """Returns the bias as it is: no cache grows."""
    return bias


@step.register
def _(unit: SSRU, rows: Any, cache: Any, at: Step) -> tuple[Any, Any]:
    forget, new = unit.gate(rows)
    before = ops.reshape(cache, (-1, unit.hidden_size))
    state = new + forget * (before - new)  # [batch * beams, hidden]
    return ops.relu(state), ops.reshape(state, (-1, at.beams, unit.hidden_size))


def recurrence(forget: Any, new: Any, kept: Any = None) -> Any:
    """c_t = f_t * c_(t-1) + (1 - f_t) * u_t, c_0 = 0.

    The gradient is written out: XLA compiles no gradient of a loop whose length TensorFlow does not know.

    Args:
        forget: f, float32 [length, batch, hidden].
        new: u, float32 [length, batch, hidden].
        kept: whether each position but the first has a state before it, bool [length - 1, batch]; `None` has
            one everywhere. Elsewhere c_(t-1) is 0.

    Returns:
        c, float32 [length, batch, hidden].
    """
    kept = None if kept is None else ops.cast(kept, forget.dtype)[:, :, None]

    def keep(x: Any) -> Any:
        """Sets to 0 what a position gets of one before it, [length - 1, batch, hidden]."""
        return x if kept is None else x * kept

    @ops.custom_gradient
    def states_of(forget: Any, new: Any) -> Any:
        decay = forget if kept is None else ops.concatenate([forget[:1], keep(forget[1:])])
        states = accumulate(decay, (1 - forget) * new)

        def gradient(*args: Any, upstream: Any = None) -> tuple[Any, Any]:
            up = args[0] if upstream is None else upstream
            nothing = ops.zeros_like(forget[:1])
            # A state changes the output of its position, and the next state by that one's f.
            slope = accumulate(ops.concatenate([decay[1:], nothing]), up, reverse=True)
            before = ops.concatenate([nothing, keep(states[:-1])])
            return slope * (before - new), slope * (1 - forget)

        return states, gradient

    return states_of(forget, new)


def accumulate(decay: Any, added: Any, reverse: bool = False) -> Any:
    """y_t = decay_t * y_(t-1) + added_t, all [length, ...]; with `reverse`, from the last to the first."""

    def step(before: Any, inputs: Any) -> tuple[Any, Any]:
        state = inputs[0] * before + inputs[1]
        return state, state

    # Stacked, since Keras's scan over two tensors of unknown length fails under TensorFlow.
    inputs = ops.stack([decay, added], axis=1)  # [length, 2, ...]
    return ops.scan(step, ops.zeros_like(added[0]), inputs, reverse=reverse)[1]
