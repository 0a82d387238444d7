"""Positions told by attention, not by embeddings: hparam `pos=rotary` and `pos=relative`."""

from typing import Any

import keras
from keras import ops

from t2t_revival.model.attention import MultiHeadAttention, attention_weights
from t2t_revival.model.embedding import MAX_WAVELENGTH
from t2t_revival.model.layer import LayerConfig


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
    """Turns each pair of channels (2i, 2i + 1) by position * 10000^(-2i / d_k): equation (34).

    Args:
        x: [batch, heads, length, key].
        positions: int [length], or [1] for one that all share.

    Returns:
        [batch, heads, length, key].
    """
    pairs, shape = x.shape[-1] // 2, ops.shape(x)
    rates = MAX_WAVELENGTH ** (-ops.arange(pairs, dtype="float32") / pairs)
    angles = ops.cast(positions, "float32")[:, None] * rates[None, :]  # [length or 1, pairs]
    cosines, sines = ops.repeat(ops.cos(angles), 2, axis=-1), ops.sin(angles)
    sines = ops.reshape(ops.stack([-sines, sines], axis=-1), (-1, 2 * pairs))
    swapped = ops.flip(ops.reshape(x, (*shape[:-1], pairs, 2)), axis=-1)
    return x * ops.cast(cosines, x.dtype) + ops.reshape(swapped, shape) * ops.cast(sines, x.dtype)


@keras.saving.register_keras_serializable("t2t_revival")
class RelativeAttention(MultiHeadAttention):
    """`MultiHeadAttention` of a sentence over itself, with a key and a value for each distance.

    The score of query i and key j is q_i (k_j + a_(j-i)) / sqrt(d_k), and v_j + b_(j-i) is what is averaged.
    a and b are learned, the same for all heads, and the same for all distances of `max_relative_position` and
    more. Nothing is added to embeddings.

    Distances are few: q_i a is computed for all of them, and put where it belongs by a matrix of 0 and 1 for
    each query, the same for all heads. On CPUs that takes a third to three quarters of the time of skewing
    rows of distances (Huang et al., 2018, "Music Transformer", section 3.4.1).

    Example:
        config = LayerConfig(num_heads=8, hidden_size=512, pos="relative", max_relative_position=20)
        output = RelativeAttention(config)(x, mask=ids != 0)    # [batch, length, 512] -> the same shape

    Reference: Shaw et al., 2018, "Self-Attention with Relative Position Representations", equations (3) and
    (4); T2T's `dot_product_attention_relative`.
    """

    def __init__(self, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.max_distance = config.max_relative_position

    def build(self, input_shape: Any = None) -> None:
        places, glorot = 2 * self.max_distance + 1, "glorot_uniform"
        keys, values = ((places, size // self.num_heads) for size in self.sizes[1:])
        self.relative_keys = self.add_weight(name="relative_keys", shape=keys, initializer=glorot)
        self.relative_values = self.add_weight(name="relative_values", shape=values, initializer=glorot)
        super().build()

    def attend(
        self, query: Any, key: Any, value: Any, bias: Any, at: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """Attention of all heads; see `MultiHeadAttention.attend`."""
        positions = ops.arange(ops.shape(query)[2])
        distances = positions[None, None, :] - positions[None, :, None] if at is None else at.distances
        places = ops.clip(distances, -self.max_distance, self.max_distance) + self.max_distance
        # [1 or batch, query, memory, places]
        is_at = ops.one_hot(places, 2 * self.max_distance + 1, dtype=query.dtype)
        keys, values = (ops.cast(table, query.dtype) for table in (self.relative_keys, self.relative_values))
        query = query * (query.shape[-1] ** -0.5)
        of_places = ops.matmul(query, ops.transpose(keys))  # [batch, heads, query, places]
        relative_bias = spread(of_places, ops.transpose(is_at, (0, 1, 3, 2)))
        if bias is not None:
            relative_bias = relative_bias + ops.cast(bias, query.dtype)
        weights = attention_weights(query, key, relative_bias)
        dropped = self.dropout(weights, training=training)
        heads = ops.matmul(dropped, value) + ops.matmul(spread(dropped, is_at), values)
        return heads, weights


def spread(x: Any, matrices: Any) -> Any:
    """[batch, heads, query, from] by a matrix for each query, [1 or batch, query, from, to].

    Returns [batch, heads, query, to].
    """
    rows = ops.transpose(x, (0, 2, 1, 3))  # [batch, query, heads, from]
    return ops.transpose(ops.matmul(rows, matrices), (0, 2, 1, 3))
