"""Positions told by rotation: hparam `pos=rotary`."""

from typing import Any

import keras
from keras import ops

from t2t_revival.model.attention import MultiHeadAttention
from t2t_revival.model.embedding import MAX_WAVELENGTH


@keras.saving.register_keras_serializable("t2t_revival")
class RotaryAttention(MultiHeadAttention):
    """`MultiHeadAttention` of a sentence over itself, whose queries and keys are turned by their positions.

    The score of two positions depends on their distance then, and nothing is added to embeddings.

    Example:
        attention = RotaryAttention(LayerConfig(num_heads=8, hidden_size=512, pos="rotary"))
        output = attention(x, mask=ids != 0)    # [batch, length, 512] -> the same shape

    Reference: Su et al., 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3.2.
    """

    def project(self, rows: Any, length: Any, at: Any = None) -> list[Any]:
        """Queries, keys and values; see `MultiHeadAttention.project`."""
        query, key, value = super().project(rows, length)
        positions = ops.arange(length) if at is None else at.position
        return [rotate(query, positions), rotate(key, positions), value]


def rotate(x: Any, positions: Any) -> Any:
    """Turns each pair of channels (2i, 2i + 1) by position * 10000^(-2i / d_k): equation (15).

    Args:
        x: [batch, heads, length, key].
        positions: int [length], or [1] for one that all share.

    Returns:
        [batch, heads, length, key].
    """
    pairs = x.shape[-1] // 2
    rates = MAX_WAVELENGTH ** (-ops.arange(pairs, dtype="float32") / pairs)
    angles = ops.cast(positions, "float32")[:, None] * rates[None, :]  # [length or 1, pairs]
    cosines, sines = (ops.cast(values, x.dtype) for values in (ops.cos(angles), ops.sin(angles)))
    shape = ops.shape(x)
    x = ops.reshape(x, (*shape[:-1], pairs, 2))
    first, second = x[..., 0], x[..., 1]  # [batch, heads, length, pairs]
    turned = [first * cosines - second * sines, first * sines + second * cosines]
    return ops.reshape(ops.stack(turned, axis=-1), shape)
