"""Section 3 of the paper once more, in plain NumPy float64 and loops: what the model is held against."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from t2t_revival import HParams

Array = np.ndarray


def normal_arrays(seed: int) -> Callable[..., Array]:
    """Returns what draws float32 arrays of given shapes from the normal distribution."""
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.standard_normal(shape).astype("float32")


def softmax(x: Array) -> Array:
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def attention_weights(query: Array, key: Array, visible: Array) -> Array:
    """The softmax of equation (1) of one head: [query, memory]; see `attention`."""
    scores = query @ key.T / math.sqrt(query.shape[-1])
    return softmax(np.where(visible, scores, -np.inf))


def attention(query: Array, key: Array, value: Array, visible: Array) -> Array:
    """Equation (1) of one head: [query, d_k], [memory, d_k], [memory, d_v], bool [query, memory]."""
    return attention_weights(query, key, visible) @ value


def multi_head(
    x: Array,
    memory: Array,
    matrices: dict[str, Array],
    heads: int,
    visible: Array,
    record: list[Array] | None = None,
) -> Array:
    """Section 3.2.2 of one sentence: [query, hidden], [memory, hidden] -> [query, hidden].

    `record` gets the weights, [heads, query, memory].
    """
    outputs, weights = [], []
    for head in range(heads):
        query, key, value = (
            source @ np.split(matrices[name], heads, axis=1)[head]
            for name, source in (("query", x), ("key", memory), ("value", memory))
        )
        outputs.append(attention(query, key, value, visible))
        weights.append(attention_weights(query, key, visible))
    if record is not None:
        record.append(np.stack(weights))
    return np.concatenate(outputs, axis=-1) @ matrices["output"]


def neighbourhoods(length: int, window: int, masked: bool) -> Array:
    """Section 4: whether a position (row) sees another (column), bool [length, length]; window 0: all."""
    visible = np.zeros((length, length), bool)
    for i in range(length):
        first, last = (i - window // 2, i + (window - 1) // 2) if window else (0, length)
        visible[i, max(first, 0) : (i if masked else last) + 1] = True
    return visible


def feed_forward(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    """Equation (2)."""
    return np.maximum(0, x @ w1 + b1) @ w2 + b2


def ssru(x: Array, kernel: Array, forget_bias: Array) -> Array:
    """Kim et al., 2019, section 3.2, of one sentence: [length, hidden] -> the same shape."""
    to_forget, to_new = np.split(kernel, 2, axis=1)
    state, outputs = np.zeros(x.shape[1]), []
    for vector in x:
        forget = 1 / (1 + np.exp(-(vector @ to_forget + forget_bias)))
        state = forget * state + (1 - forget) * (vector @ to_new)
        outputs.append(np.maximum(0, state))
    return np.stack(outputs)


def layer_norm(x: Array, gamma: Array, beta: Array, epsilon: float = 1e-6) -> Array:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


def sinusoids(length: int, hidden_size: int) -> Array:
    """Section 3.5 as printed."""
    table = np.zeros((length, hidden_size))
    for pos in range(length):
        for i in range(hidden_size // 2):
            angle = pos / 10000 ** (2 * i / hidden_size)
            table[pos, 2 * i], table[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return table


def split_columns(fused: Array, *sizes: int) -> list[Array]:
    return np.split(fused, np.cumsum(sizes)[:-1], axis=1)


def self_matrices(weights: dict[str, Array], prefix: str, h: HParams) -> dict[str, Array]:
    """W^Q, W^K, W^V and W^O out of the one matrix in which the model keeps the first three."""
    parts = split_columns(
        weights[f"{prefix}/query_key_value"], h.key_channels, h.key_channels, h.value_channels
    )
    return dict(zip(("query", "key", "value"), parts, strict=True), output=weights[f"{prefix}/output"])


def cross_matrices(weights: dict[str, Array], prefix: str, h: HParams) -> dict[str, Array]:
    key, value = split_columns(weights[f"{prefix}/key_value"], h.key_channels, h.value_channels)
    query, output = weights[f"{prefix}/query"], weights[f"{prefix}/output"]
    return {"query": query, "key": key, "value": value, "output": output}


class NumpyTransformer:
    """Figure 1 with the weights of a model, one sentence pair at a time.

    Args:
        model: a `Transformer`; its weights are read by path.

    Attributes:
        attended: the attention weights of the last call, [layers, heads, query, memory], by the names of
            the model's sub-layers.
    """

    def __init__(self, model: Any) -> None:
        self.h: HParams = model.hparams
        self.weights = {w.path.removeprefix("transformer/"): np.array(w, "float64") for w in model.weights}

    def __call__(self, source: Array, targets: Array) -> Array:
        """Ids [source] and [target], both padded with 0 -> logits [target, vocab]."""
        self._records: dict[str, list[Array]] = defaultdict(list)
        into, out = (
            side if f"{side}_embedding/embeddings" in self.weights else "target"
            for side in ("source", "softmax")
        )
        visible = (source != 0) & neighbourhoods(len(source), self.h.attention_window, masked=False)
        x = self._embed(source, into) + self._positions("source", len(source))
        encoded = self._stack("encoder", x, visible)
        x = self._embed(targets, "target")
        x = np.concatenate([np.zeros((1, self.h.hidden_size)), x[:-1]])
        x = x + self._positions("target", len(targets))
        if self.h.deterministic_attention:
            x = x + self._next_words(source, targets, encoded)
        earlier = neighbourhoods(len(targets), self.h.attention_window, masked=True)
        encoder_visible = np.broadcast_to(source != 0, (len(targets), len(source)))
        x = self._stack("decoder", x, earlier, encoded, encoder_visible)
        self.attended = {name: np.stack(layers) for name, layers in self._records.items()}
        return x @ self.weights[f"{out}_embedding/embeddings"].T

    def _embed(self, ids: Array, side: str) -> Array:
        vectors = self.weights[f"{side}_embedding/embeddings"][ids] * math.sqrt(self.h.hidden_size)
        return np.where(ids[:, None] == 0, 0, vectors)

    def _positions(self, side: str, length: int) -> Array:
        if self.h.pos == "emb":
            return self.weights[f"{side}_positions/embeddings"][:length]
        return sinusoids(length, self.h.hidden_size)

    def _next_words(self, source: Array, targets: Array, encoded: Array) -> Array:
        """Before each target, the encoded first token of the word that is next: [target, hidden]."""
        begins, ends, stands_for = self.weights["deterministic_attention/marks"].T
        firsts = [
            place
            for place, token in enumerate(source)
            if place == 0 or begins[token] or ends[source[place - 1]]
        ]
        vectors, words_emitted = np.zeros((len(targets), self.h.hidden_size)), 0
        for place in range(len(targets)):
            words_emitted += int(stands_for[targets[place - 1]]) if place else 0
            if words_emitted < len(firsts):
                vectors[place] = (
                    encoded[firsts[words_emitted]] @ self.weights["deterministic_attention/kernel"]
                )
        return vectors

    def _norm(self, x: Array, prefix: str) -> Array:
        return layer_norm(x, self.weights[f"{prefix}/gamma"], self.weights[f"{prefix}/beta"])

    def _residual(self, x: Array, prefix: str, sublayer: Any) -> Array:
        if self.h.pre_norm:
            return x + sublayer(self._norm(x, f"{prefix}_residual/norm"))
        return self._norm(x + sublayer(x), f"{prefix}_residual/norm")

    def _stack(
        self,
        stack: str,
        x: Array,
        visible: Array,
        encoded: Array | None = None,
        encoder_visible: Array | None = None,
    ) -> Array:
        w, h, records = self.weights, self.h, self._records
        for i in range(h.num_hidden_layers):
            prefix = f"{stack}/layer_{i}/self_attention"
            if encoded is not None and h.decoder_self_attention == "ssru":
                unit = [w[f"{prefix}/{name}"] for name in ("kernel", "forget_bias")]
                x = self._residual(x, prefix, lambda x, unit=unit: ssru(x, *unit))
            else:
                matrices = self_matrices(w, prefix, h)
                record = records[f"{stack}/self_attention"]
                x = self._residual(
                    x, prefix, lambda x, m=matrices, r=record: multi_head(x, x, m, h.num_heads, visible, r)
                )
            if encoded is not None:
                prefix = f"{stack}/layer_{i}/encoder_attention"
                matrices = cross_matrices(w, prefix, h)
                record = records[f"{stack}/encoder_attention"]
                x = self._residual(
                    x,
                    prefix,
                    lambda x, m=matrices, r=record: multi_head(
                        x, encoded, m, h.num_heads, encoder_visible, r
                    ),
                )
            prefix = f"{stack}/layer_{i}/feed_forward"
            ffn = [w[f"{prefix}/{name}"] for name in ("kernel_1", "bias_1", "kernel_2", "bias_2")]
            x = self._residual(x, prefix, lambda x, ffn=ffn: feed_forward(x, *ffn))
        return self._norm(x, f"{stack}/final_norm") if h.pre_norm else x
