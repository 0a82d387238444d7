"""Section 3.2: attention.

Shapes: `batch` sentences, `heads` = h, `query` and `memory` positions, `key` = d_k and `value` = d_v
channels of one head, `hidden` = d_model channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.model.building import build_children
from t2t_revival.model.regularization import Dropout

Cache = tuple[Any, Any]  # keys and values
MASKED = -3e4  # added to a score, it takes the position out of the softmax; float16 has it too
_RECORD: ContextVar[list[Any] | None] = ContextVar("recorded attention weights", default=None)


def padding_bias(ids: Any) -> Any:
    """Bias that hides padding: [batch, memory] ids, 0 is padding -> float [batch, 1, 1, memory]."""
    return ops.cast(ops.equal(ids, 0), keras.config.floatx())[:, None, None, :] * MASKED


def causal_bias(length: Any) -> Any:
    """Bias that hides later positions (section 3.2.3): float [1, 1, length, length]."""
    positions = ops.arange(length)
    later = ops.less(positions[:, None], positions[None, :])
    return ops.cast(later, keras.config.floatx())[None, None] * MASKED


def own_bias(beams: Any) -> Any:
    """Bias by which each hypothesis of a beam search sees itself only: float [beams, beams]."""
    return (1.0 - ops.eye(beams, dtype=keras.config.floatx())) * MASKED


@contextmanager
def recorded_weights() -> Iterator[list[Any]]:
    """Keeps the weights of each attention that is computed inside, in this thread, without a graph.

    Yields:
        A list that gets them in their order, each [batch, heads, query, memory], before dropout.
    """
    record: list[Any] = []
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


def recording() -> list[Any] | None:
    """The list of the innermost `recorded_weights` that is open."""
    return _RECORD.get()


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, dropout: Dropout | None = None, training: bool = False
) -> Any:
    """Section 3.2.1, equation (1): softmax(Q K^T / sqrt(d_k)) V.

    Args:
        query: [batch, heads, query, key].
        key: [batch, heads, memory, key].
        value: [batch, heads, memory, value].
        bias: added to the scaled scores; broadcasts to [batch, heads, query, memory].
        dropout: applied to the attention weights (T2T's `attention_dropout`; the paper has none).
        training: whether dropout is active.

    Returns:
        [batch, heads, query, value].
    """
    query = query * (query.shape[-1] ** -0.5)
    scores = ops.einsum("bhqd,bhmd->bhqm", query, key)  # [batch, heads, query, memory]
    if bias is not None:
        scores = scores + ops.cast(bias, scores.dtype)
    weights = ops.softmax(scores, axis=-1)
    if (record := recording()) is not None:
        record.append(weights)
    if dropout is not None:
        weights = dropout(weights, training=training)
    return ops.matmul(weights, value)


class MultiHeadAttention(keras.layers.Layer):
    """Section 3.2.2: h heads attend side by side; their outputs are joined and projected.

    Projections have no bias. W^Q, W^K and W^V of all heads stand side by side in one matrix, so that one
    matrix product serves all of them; over an encoder's output, W^Q stands alone, since queries come
    from elsewhere (section 3.2.3, first use).

    Args:
        hparams: reads `hidden_size`, `num_heads`, `key_channels`, `value_channels`, `attention_dropout`.
        over_encoder: whether keys and values come from the encoder's output.
    """

    def __init__(self, hparams: HParams, over_encoder: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_heads = hparams.num_heads
        self.hidden_size = hparams.hidden_size
        self.key_channels = hparams.key_channels
        self.value_channels = hparams.value_channels
        self.over_encoder = over_encoder
        self.dropout = Dropout(hparams.attention_dropout, name="dropout")

    def build(self, input_shape: Any = None) -> None:
        query, key, value = self.key_channels, self.key_channels, self.value_channels
        if self.over_encoder:
            self.query_kernel = self._kernel("query", self.hidden_size, (query,))
            self.key_value_kernel = self._kernel("key_value", self.hidden_size, (key, value))
        else:
            self.query_key_value_kernel = self._kernel(
                "query_key_value", self.hidden_size, (query, key, value)
            )
        self.output_kernel = self._kernel("output", self.value_channels, (self.hidden_size,))
        build_children(self)
        self.built = True

    def call(self, x: Any, encoded: Any = None, bias: Any = None, training: bool = False) -> Any:
        """MultiHead(Q, K, V).

        Args:
            x: [batch, query, hidden]; also keys and values where there is no `encoded`.
            encoded: the encoder's output, [batch, memory, hidden].
            bias: broadcasts to [batch, heads, query, memory].
            training: whether dropout is active.

        Returns:
            [batch, query, hidden].
        """
        length = ops.shape(x)[1]
        rows = ops.reshape(x, (-1, self.hidden_size))  # [batch * query, hidden]
        if self.over_encoder:
            query = self._query_heads(rows, length)
            key, value = self.key_value_heads(encoded)
        else:
            query, key, value = self._query_key_value_heads(rows, length)
        heads = scaled_dot_product_attention(query, key, value, bias, self.dropout, training)
        return ops.reshape(self._join(heads), (-1, length, self.hidden_size))

    def key_value_heads(self, encoded: Any) -> Cache:
        """[batch, memory, hidden] -> K and V of all heads, [batch, heads, memory, key or value]."""
        rows = ops.reshape(encoded, (-1, self.hidden_size))  # [batch * memory, hidden]
        sizes = (self.key_channels, self.value_channels)
        key, value = self._project(rows, self.key_value_kernel, sizes, ops.shape(encoded)[1])
        return key, value

    def step(self, x: Any, beams: Any, cache: Cache, bias: Any) -> tuple[Any, Cache]:
        """Attention of one new position of several beams over itself and the positions before it.

        What a hypothesis descends from may have been in another beam at each position. The cache keeps all
        beams of all positions where they were, and `bias` tells which are a hypothesis's own: nothing is
        ever moved.

        Args:
            x: [batch * beams, hidden].
            beams: how many hypotheses a sentence has, int scalar.
            cache: K and V of all beams at the positions before, [batch, heads, memory, key or value].
            bias: [batch, 1, beams, memory + beams].

        Returns:
            [batch * beams, hidden], and the cache with the new position.
        """
        query, key, value = self._query_key_value_heads(x, beams)  # [batch, heads, beams, key or value]
        key = ops.concatenate([cache[0], key], axis=2)
        value = ops.concatenate([cache[1], value], axis=2)
        return self._join(scaled_dot_product_attention(query, key, value, bias)), (key, value)

    def step_over_encoder(self, x: Any, beams: Any, cache: Cache, bias: Any) -> Any:
        """Attention of one new position of several beams over the encoder's output.

        The beams of a sentence are so many queries to the same keys, which are therefore never repeated.

        Args:
            x: [batch * beams, hidden].
            beams: how many hypotheses a sentence has, int scalar.
            cache: K and V of the encoder's output, [batch, heads, memory, key or value].
            bias: [batch, 1, 1, memory].

        Returns:
            [batch * beams, hidden].
        """
        return self._join(scaled_dot_product_attention(self._query_heads(x, beams), *cache, bias))

    def _query_heads(self, rows: Any, length: Any) -> Any:
        """[batch * length, hidden] -> Q of all heads, [batch, heads, length, key]."""
        return self._project(rows, self.query_kernel, (self.key_channels,), length)[0]

    def _query_key_value_heads(self, rows: Any, length: Any) -> list[Any]:
        """[batch * length, hidden] -> Q, K and V of all heads, [batch, heads, length, key or value]."""
        sizes = (self.key_channels, self.key_channels, self.value_channels)
        return self._project(rows, self.query_key_value_kernel, sizes, length)

    def _project(self, rows: Any, kernel: Any, sizes: tuple[int, ...], length: Any) -> list[Any]:
        """[batch * length, hidden] -> for each of `sizes` channels, [batch, heads, length, size / heads]."""
        flat = self._matmul(rows, kernel)
        if len(set(sizes)) > 1:
            borders = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
            return [self._split_heads(part, length) for part in ops.split(flat, borders, axis=-1)]
        parts = ops.reshape(flat, (-1, length, len(sizes), self.num_heads, sizes[0] // self.num_heads))
        parts = ops.transpose(parts, (2, 0, 3, 1, 4))  # [parts, batch, heads, length, channels of a head]
        return ops.unstack(parts, len(sizes), axis=0)

    def _split_heads(self, flat: Any, length: Any) -> Any:
        heads = ops.reshape(flat, (-1, length, self.num_heads, flat.shape[-1] // self.num_heads))
        return ops.transpose(heads, (0, 2, 1, 3))  # [batch, heads, length, channels of a head]

    def _join(self, heads: Any) -> Any:
        """[batch, heads, length, value] -> [batch * length, hidden]: side by side, through W^O."""
        joined = ops.transpose(heads, (0, 2, 1, 3))  # [batch, length, heads, value]
        return self._matmul(ops.reshape(joined, (-1, self.value_channels)), self.output_kernel)

    def _matmul(self, x: Any, kernel: Any) -> Any:
        """In the layer's precision: Keras casts weights inside `call` only, not inside `step`."""
        return ops.matmul(x, ops.cast(kernel, self.compute_dtype))

    def _kernel(self, name: str, rows: int, columns: tuple[int, ...]) -> Any:
        """A matrix of several side by side, each initialised as if it stood alone."""
        parts = [keras.initializers.GlorotUniform() for _ in columns]

        def initializer(shape: Any, dtype: Any = None) -> Any:
            return ops.concatenate(
                [part((rows, size), dtype=dtype) for part, size in zip(parts, columns, strict=True)], axis=1
            )

        return self.add_weight(name=name, shape=(rows, sum(columns)), initializer=initializer)
