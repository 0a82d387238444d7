"""Section 3.2: attention.

Shapes: `batch` sentences, `heads` = h, `query` and `memory` positions, `key` = d_k and `value` = d_v
channels of one head, `hidden` = d_model channels.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_revival.model.dropout import Dropout
from t2t_revival.model.layer import SequenceLayer, SideBySide
from t2t_revival.model.products import matmul

Cache = tuple[Any, Any]  # keys and values, [batch, heads, memory, key or value]
MASKED = -3e4  # added to a score, it takes the position out of the softmax; float16 has it too


class FixedCache(NamedTuple):
    """A cache that does not grow: compiled programs of fixed shapes write new positions into it.

    Attributes:
        keys: [batch, heads, memory, key], 0 where nothing is written yet.
        values: [batch, heads, memory, value], likewise.
        place: index in memory at which the next position begins, int32 scalar.
    """

    keys: Any
    values: Any
    place: Any


def padding_bias(mask: Any) -> Any:
    """Returns the bias that hides padding: bool [batch, memory], False for it -> [batch, 1, 1, memory]."""
    padding = ops.cast(ops.logical_not(mask), keras.config.floatx())
    return ops.expand_dims(padding, (1, 2)) * MASKED


def causal_bias(length: Any) -> Any:
    """Returns the bias that hides later positions (section 3.2.3), float [1, 1, length, length]."""
    positions = ops.arange(length)
    later = ops.less(positions[:, None], positions[None, :])
    return ops.cast(later, keras.config.floatx())[None, None] * MASKED


def extend_cache(cache: Cache | FixedCache, key: Any, value: Any) -> Cache | FixedCache:
    """Adds keys and values of a position, [batch, heads, beams, key or value], to a cache."""
    if isinstance(cache, FixedCache):
        start = (0, 0, cache.place, 0)
        keys, values = ops.slice_update(cache.keys, start, key), ops.slice_update(cache.values, start, value)
        return FixedCache(keys, values, cache.place + ops.shape(key)[2])
    return ops.concatenate([cache[0], key], axis=2), ops.concatenate([cache[1], value], axis=2)


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, dropout: Dropout | None = None, training: bool = False
) -> tuple[Any, Any]:
    """Section 3.2.1, equation (1): softmax(Q K^T / sqrt(d_k)) V.

    Args:
        query: [batch, heads, query, key].
        key: [batch, heads, memory, key].
        value: [batch, heads, memory, value].
        bias: added to the scaled scores; broadcasts to [batch, heads, query, memory].
        dropout: applied to the attention weights (T2T's `attention_dropout`; the paper has none).
        training: whether dropout is active.

    Returns:
        [batch, heads, query, value], and the attention weights before dropout, [batch, heads, query, memory].
    """
    query = query * (query.shape[-1] ** -0.5)
    scores = ops.einsum("bhqd,bhmd->bhqm", query, key)  # [batch, heads, query, memory]
    if bias is not None:
        scores = scores + ops.cast(bias, scores.dtype)
    weights = ops.softmax(scores, axis=-1)
    dropped = weights if dropout is None else dropout(weights, training=training)
    return ops.matmul(dropped, value), weights


@keras.saving.register_keras_serializable("t2t_revival")
class MultiHeadAttention(SequenceLayer):
    """Section 3.2.2: h heads attend side by side; their outputs are concatenated and projected.

    Projections have no bias. W^Q, W^K and W^V of all heads stand side by side in one matrix, so that one
    matrix product serves all of them; in attention over an encoder's output, W^Q stands alone, since
    queries come from elsewhere (section 3.2.3, first use).

    Args:
        num_heads: h.
        hidden_size: d_model, channels of inputs and outputs.
        key_channels: h * d_k, channels of the keys of all heads together; `None` uses `hidden_size`.
        value_channels: h * d_v, likewise.
        dropout: probability, on the attention weights.
        cross_attention: whether keys and values come from an encoder's output.
        causal: whether later positions are hidden (section 3.2.3, third use).

    Example:
        attention = MultiHeadAttention(num_heads=8, hidden_size=512)
        output = attention(x, mask=ids != 0)    # [batch, length, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.2.2; T2T's `multihead_attention`.
    """

    def __init__(
        self,
        num_heads: int,
        hidden_size: int,
        key_channels: int | None = None,
        value_channels: int | None = None,
        dropout: float = 0.0,
        cross_attention: bool = False,
        causal: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.hidden_size = hidden_size
        self.key_channels = key_channels or hidden_size
        self.value_channels = value_channels or hidden_size
        self.sizes = (self.key_channels, self.key_channels, self.value_channels)
        self.cross_attention = cross_attention
        self.causal = causal
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape: Any = None) -> None:
        if self.cross_attention:
            self.query_kernel = self._kernel("query", self.hidden_size, self.sizes[:1])
            self.key_value_kernel = self._kernel("key_value", self.hidden_size, self.sizes[1:])
        else:
            self.query_key_value_kernel = self._kernel("query_key_value", self.hidden_size, self.sizes)
        self.output_kernel = self._kernel("output", self.value_channels, (self.hidden_size,))
        super().build()

    def call(
        self,
        x: Any,
        encoded: Any = None,
        mask: Any = None,
        bias: Any = None,
        cache: Cache | FixedCache | None = None,
        beams: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> Any:
        """MultiHead(Q, K, V); with a `cache`, of one new position of several beams (see `DecoderState`).

        Args:
            x: [batch, query, hidden], also memory without `encoded`; with a cache, [batch * beams, hidden].
            encoded: the encoder's output, [batch, memory, hidden].
            mask: bool [batch, memory], False where memory is padding; `None` shows all.
            bias: replaces what `mask` and `causal` hide; broadcasts to [batch, heads, query, memory].
            cache: K and V of all earlier positions; in cross-attention, of the encoder's output.
            beams: hypotheses of a sentence, with a cache: so many queries to the same keys.
            training: whether dropout is active.
            return_attention_scores: whether the attention weights are returned too.

        Returns:
            [batch, query, hidden]; or that and the weights before dropout, [batch, heads, query, memory].
            With a cache, [batch * beams, hidden] and the cache with the new position.
        """
        if bias is None and cache is None:
            bias = self.attention_bias(x, mask)
        length = ops.shape(x)[1] if cache is None else beams
        rows = x if cache else ops.reshape(x, (-1, self.hidden_size))  # [batch * query, hidden]
        if self.cross_attention:
            query = self._project(rows, self.query_kernel, self.sizes[:1], length)[0]
            key, value = self.key_value_heads(encoded) if cache is None else cache[:2]
        else:
            query, key, value = self._project(rows, self.query_key_value_kernel, self.sizes, length)
            if cache is not None:
                cache = extend_cache(cache, key, value)
                key, value = cache[:2]
        heads, weights = scaled_dot_product_attention(query, key, value, bias, self.dropout, training)
        rows = self._join(heads)
        if cache is not None:
            return rows, cache
        output = ops.reshape(rows, (-1, length, self.hidden_size))
        return (output, weights) if return_attention_scores else output

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Returns the output's mask for Keras: that of `x`, never that of an encoder's output."""
        return None if self.cross_attention else previous_mask

    def attention_bias(self, x: Any, mask: Any = None) -> Any:
        """Returns the bias by which `call` attends, [batch, 1, query or 1, memory]; `None` hides nothing."""
        bias = None if mask is None else padding_bias(mask)
        if self.causal:
            batch, length = ops.shape(x)[:2]
            # One bias for all would do, but oneDNN adds one whose batch is 1 at a 200th of the speed.
            causal = ops.broadcast_to(causal_bias(length), (batch, 1, length, length))
            bias = causal if bias is None else causal + bias
        return None if bias is None else ops.cast(bias, self.compute_dtype)

    def empty_cache(self, batch: Any, beams: Any, positions: int = 0) -> Cache | FixedCache:
        """Returns the cache before the first position, which all beams share.

        With `positions`, it has room for as many of `beams` each, and does not grow.
        """
        channels = (size // self.num_heads for size in (self.key_channels, self.value_channels))
        memory = positions * beams if positions else 0
        keys, values = (
            ops.zeros((batch, self.num_heads, memory, size), dtype=self.compute_dtype) for size in channels
        )
        return FixedCache(keys, values, ops.zeros((), "int32")) if positions else (keys, values)

    def next_bias(self, bias: Any, batch: Any, beams: Any, cache: Any = None) -> Any:
        """Adds a position at which each beam sees itself only: [batch, beams, memory + beams].

        It is appended, or written into a bias of fixed size at the place of `cache`, a `FixedCache`.
        """
        beam_diagonal_bias = (1.0 - ops.eye(beams, dtype=keras.config.floatx())) * MASKED
        own = ops.broadcast_to(beam_diagonal_bias, (batch, beams, beams))
        if isinstance(cache, FixedCache):
            return ops.slice_update(bias, (0, 0, cache.place), own)
        return ops.concatenate([bias, own], axis=2)

    def key_value_heads(self, encoded: Any) -> Cache:
        """Returns the cache of cross-attention: [batch, memory, hidden] -> K and V of all heads."""
        rows = ops.reshape(encoded, (-1, self.hidden_size))  # [batch * memory, hidden]
        key, value = self._project(rows, self.key_value_kernel, self.sizes[1:], ops.shape(encoded)[1])
        return key, value

    def _project(self, rows: Any, kernel: Any, sizes: tuple[int, ...], length: Any) -> list[Any]:
        """[batch * length, hidden] -> for each of `sizes` channels, [batch, heads, length, size / heads]."""
        flat = self._matmul(rows, kernel)  # [batch * length, sum of sizes]
        if len(set(sizes)) > 1:
            starts = [sum(sizes[:i]) for i in range(1, len(sizes))]
            parts = [
                ops.reshape(part, (-1, length, self.num_heads, part.shape[-1] // self.num_heads))
                for part in ops.split(flat, starts, axis=-1)
            ]
            return [ops.transpose(part, (0, 2, 1, 3)) for part in parts]
        parts = ops.reshape(flat, (-1, length, len(sizes), self.num_heads, sizes[0] // self.num_heads))
        parts = ops.transpose(parts, (2, 0, 3, 1, 4))  # [parts, batch, heads, length, channels of a head]
        return ops.unstack(parts, len(sizes), axis=0)

    def _join(self, heads: Any) -> Any:
        """[batch, heads, length, value] -> [batch * length, hidden]: concatenated, through W^O."""
        joined = ops.transpose(heads, (0, 2, 1, 3))  # [batch, length, heads, value]
        return self._matmul(ops.reshape(joined, (-1, self.value_channels)), self.output_kernel)

    def _matmul(self, rows: Any, kernel: Any) -> Any:
        """Projects [rows, channels]; table 1's layers without projections replace it."""
        return matmul(rows, kernel)

    def _kernel(self, name: str, rows: int, columns: tuple[int, ...]) -> Any:
        shape = (rows, sum(columns))
        return self.add_weight(name=name, shape=shape, initializer=SideBySide(columns))
