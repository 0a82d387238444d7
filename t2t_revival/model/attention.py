"""Section 3.2: attention."""

from typing import Any

import keras
from keras import ops

from t2t_revival.model.dropout import Dropout
from t2t_revival.model.layer import ConfiguredLayer, LayerConfig, SideBySide
from t2t_revival.model.products import matmul

MASKED = -3e4  # added to a score, it takes the position out of the softmax; float16 has it too


def padding_bias(mask: Any) -> Any:
    """Returns the bias that hides padding: bool [batch, memory], False for it -> [batch, 1, 1, memory].

    A mask of each query, [batch, query, memory] -> [batch, 1, query, memory].
    """
    padding = ops.cast(ops.logical_not(mask), keras.config.floatx())
    return ops.expand_dims(padding, (1, 2) if len(mask.shape) == 2 else 1) * MASKED


def same_segment(query: Any, memory: Any) -> Any:
    """Returns the mask of packed rows, in which a pair sees itself only: bool [batch, query, memory].

    The segments are int [batch, query] and [batch, memory]; see `data.packing`.
    """
    return ops.equal(query[:, :, None], memory[:, None, :])


def causal_bias(length: Any) -> Any:
    """Returns the bias that hides later positions (section 3.2.3), float [1, 1, length, length]."""
    positions = ops.arange(length)
    later = ops.less(positions[:, None], positions[None, :])
    return ops.cast(later, keras.config.floatx())[None, None] * MASKED


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
    weights = attention_weights(query * (query.shape[-1] ** -0.5), key, bias)
    dropped = weights if dropout is None else dropout(weights, training=training)
    return ops.matmul(dropped, value), weights


def attention_weights(query: Any, key: Any, bias: Any = None) -> Any:
    """softmax(Q K^T + bias), [batch, heads, query, memory], of scaled queries; shapes as in equation (1)."""
    scores = ops.einsum("bhqd,bhmd->bhqm", query, key)
    if bias is not None:
        scores = scores + ops.cast(bias, scores.dtype)
    return ops.softmax(scores, axis=-1)


@keras.saving.register_keras_serializable("t2t_revival")
class MultiHeadAttention(ConfiguredLayer):
    """Section 3.2.2: h heads attend side by side; their outputs are concatenated and projected.

    Projections have no bias, unless the config asks for it. W^Q, W^K and W^V of all heads stand side by side
    in one matrix, so that one matrix product serves all of them; in attention over an encoder's output, W^Q
    stands alone, since queries come from elsewhere (section 3.2.3, first use).

    Args:
        config: sizes.
        cross_attention: whether keys and values come from an encoder's output.
        causal: whether later positions are hidden (section 3.2.3, third use).

    Example:
        attention = MultiHeadAttention(LayerConfig(num_heads=8, hidden_size=512))
        output = attention(x, mask=ids != 0)    # [batch, length, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.2.2; T2T's `multihead_attention`.
    """

    def __init__(
        self, config: LayerConfig, cross_attention: bool = False, causal: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(config, **kwargs)
        self.num_heads, self.hidden_size = config.num_heads, config.hidden_size
        self.key_channels = config.key_channels or config.hidden_size
        self.value_channels = config.value_channels or config.hidden_size
        self.sizes = (self.key_channels, self.key_channels, self.value_channels)
        self.cross_attention = cross_attention
        self.causal = causal
        self.projection_bias = config.projection_bias
        self.biases: dict[str, Any] = {}  # by the name of their kernel
        self.dropout = Dropout(config.attention_dropout, dtype=self.dtype_policy, name="dropout")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "cross_attention": self.cross_attention, "causal": self.causal}

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
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> Any:
        """MultiHead(Q, K, V).

        Args:
            x: [batch, query, hidden]; also memory without `encoded`.
            encoded: the encoder's output, [batch, memory, hidden].
            mask: bool [batch, memory], False where memory is padding, or [batch, query, memory], False where
                a query does not see it; `None` shows all.
            training: whether dropout is active.
            return_attention_scores: whether the attention weights are returned too.

        Returns:
            [batch, query, hidden]; or that and the weights before dropout, [batch, heads, query, memory].
        """
        length = ops.shape(x)[1]
        rows = ops.reshape(x, (-1, self.hidden_size))  # [batch * query, hidden]
        if self.cross_attention:
            query = self.project_query(rows, length)
            key, value = self.project_memory(encoded)
        else:
            query, key, value = self.project(rows, length)
        heads, weights = self.attend(query, key, value, self.attention_bias(x, mask), training=training)
        output = ops.reshape(self.join(heads), (-1, length, self.hidden_size))
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

    def attend(
        self, query: Any, key: Any, value: Any, bias: Any, at: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """Attention of all heads; see `scaled_dot_product_attention`.

        `at` is for kinds of attention that tell positions: the `Step` of a position that is decoded, `None`
        where a sentence attends to itself.
        """
        return scaled_dot_product_attention(query, key, value, bias, self.dropout, training)

    def project(self, rows: Any, length: Any, at: Any = None) -> list[Any]:
        """Queries, keys and values: [batch * length, hidden] -> each [batch, heads, length, key or value].

        See `attend` for `at`.
        """
        return self._split(self._matmul(rows, self.query_key_value_kernel), self.sizes, length)

    def project_query(self, rows: Any, length: Any) -> Any:
        """Queries of cross-attention: [batch * length, hidden] -> [batch, heads, length, key]."""
        return self._split(self._matmul(rows, self.query_kernel), self.sizes[:1], length)[0]

    def project_memory(self, encoded: Any) -> list[Any]:
        """Keys and values of cross-attention: [batch, memory, hidden] -> each [batch, heads, memory, ...]."""
        rows = ops.reshape(encoded, (-1, self.hidden_size))  # [batch * memory, hidden]
        return self._split(self._matmul(rows, self.key_value_kernel), self.sizes[1:], ops.shape(encoded)[1])

    def join(self, heads: Any) -> Any:
        """[batch, heads, length, value] -> [batch * length, hidden]: concatenated, through W^O."""
        joined = ops.transpose(heads, (0, 2, 1, 3))  # [batch, length, heads, value]
        return self._matmul(ops.reshape(joined, (-1, self.value_channels)), self.output_kernel)

    def _split(self, flat: Any, sizes: tuple[int, ...], length: Any) -> list[Any]:
        """[batch * length, sum of sizes] -> for each size, [batch, heads, length, size / heads]."""
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

    def _matmul(self, rows: Any, kernel: Any) -> Any:
        """Projects [rows, channels]; table 1's layers without projections replace it."""
        product, bias = matmul(rows, kernel), self.biases.get(kernel.name)
        return product if bias is None else ops.add(product, ops.cast(bias, product.dtype))

    def _kernel(self, name: str, rows: int, columns: tuple[int, ...]) -> Any:
        shape = (rows, sum(columns))
        if self.projection_bias:
            bias = self.add_weight(name=f"{name}_bias", shape=shape[1:], initializer="zeros")
            self.biases[name] = bias
        return self.add_weight(name=name, shape=shape, initializer=SideBySide(columns))
