"""Sections 3.4 and 3.5: embeddings, softmax and positions."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

from t2t_revival.hparams import HParams

MAX_WAVELENGTH = 1e4


class TokenEmbedding(keras.layers.Layer):
    """Section 3.4: one vector for each token; the same matrix turns vectors into logits.

    Args:
        vocab_size: number of tokens.
        hidden_size: d_model.
    """

    def __init__(self, vocab_size: int, hidden_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size

    def build(self, input_shape: Any = None) -> None:
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocab_size, self.hidden_size),
            initializer=keras.initializers.RandomNormal(stddev=self.hidden_size**-0.5),
        )
        self.built = True

    def call(self, ids: Any) -> Any:
        """int [...] -> [..., hidden], multiplied by sqrt(d_model); padding is 0, as T2T's `symbol_bottom`."""
        vectors = ops.take(self.embeddings, ids, axis=0)
        scales = ops.cast(ops.not_equal(ids, 0), vectors.dtype) * self.hidden_size**0.5  # [...]
        return vectors * scales[..., None]

    def logits(self, x: Any) -> Any:
        """[..., hidden] -> scores of all tokens before the softmax, [..., vocab]."""
        shape = ops.shape(x)
        flat = ops.reshape(x, (-1, self.hidden_size))  # [positions, hidden]
        return ops.reshape(ops.matmul(flat, self.kernel()), (*shape[:-1], self.vocab_size))

    def kernel(self) -> Any:
        """The matrix before the softmax, [hidden, vocab]."""
        embeddings = ops.cast(self.embeddings, self.compute_dtype)  # outside `call`, Keras casts no weights
        return ops.transpose(embeddings)


def sinusoids(positions: Any, hidden_size: int) -> Any:
    """Section 3.5 as printed: sine in the even channels, cosine in the odd ones.

    Args:
        positions: float [length], counted from 0.
        hidden_size: d_model, even.

    Returns:
        [length, hidden].
    """
    channel = ops.arange(hidden_size // 2, dtype="float32")
    rates = ops.exp(channel * (-math.log(MAX_WAVELENGTH) * 2 / hidden_size))
    angles = positions[:, None] * rates[None, :]  # [length, hidden / 2]
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # [length, hidden / 2, 2]
    return ops.reshape(pairs, (-1, hidden_size))


def timing_signal(positions: Any, hidden_size: int) -> Any:
    """Section 3.5 as T2T computed it (`get_timing_signal_1d`): all sines, then all cosines.

    The longest wavelength is reached in the last channel, not one step after it. Shapes as `sinusoids`.
    """
    timescales = hidden_size // 2
    channel = ops.arange(timescales, dtype="float32")
    rates = ops.exp(channel * (-math.log(MAX_WAVELENGTH) / max(timescales - 1, 1)))
    angles = positions[:, None] * rates[None, :]  # [length, hidden / 2]
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


class Positions(keras.layers.Layer):
    """Section 3.5: adds to each vector one that tells its position.

    Args:
        hparams: reads `pos`, `hidden_size` and, for learned positions, `max_length`: positions beyond it
            share the last one's vector.
        target_space: whether a vector that is the same at all positions is added too, as T2T does to tell
            the encoder what is asked for (`target_space_embedding`, of which a problem has one row).
    """

    def __init__(self, hparams: HParams, target_space: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind = hparams.pos
        self.has_target_space = target_space
        self.hidden_size = hparams.hidden_size
        self.max_length = hparams.max_length

    def build(self, input_shape: Any = None) -> None:
        if self.kind == "emb":
            self.embeddings = self.add_weight(
                name="embeddings",
                shape=(self.max_length, self.hidden_size),
                initializer=keras.initializers.RandomNormal(stddev=self.hidden_size**-0.5),
            )
        if self.has_target_space:
            self.target_space = self.add_weight(
                name="target_space", shape=(self.hidden_size,), initializer="zeros"
            )
        self.built = True

    def call(self, x: Any, start: Any = 0) -> Any:
        """[batch, length, hidden], whose first position is number `start` -> the same shape."""
        positions = ops.arange(ops.shape(x)[1]) + start
        return x + ops.cast(self.signal(positions), x.dtype)[None]

    def signal(self, positions: Any) -> Any:
        """What is added at each position: int [length] -> [length, hidden]."""
        signal = self._of_positions(positions)
        return signal + self.target_space if self.has_target_space else signal

    def _of_positions(self, positions: Any) -> Any:
        if self.kind == "emb":
            return ops.take(self.embeddings, ops.minimum(positions, self.max_length - 1), axis=0)
        function = sinusoids if self.kind == "sinusoid" else timing_signal
        return function(ops.cast(positions, "float32"), self.hidden_size)
