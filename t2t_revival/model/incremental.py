"""Section 3, one position at a time: what a search calls, with what is computed once kept for all positions.

The equations are those of the layers. A kind of self-attention says how it starts, what a position sees and
how a position is computed: `empty_cache`, `next_bias` and `step` are functions with a form for each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
from keras import ops

from t2t_revival.model.attention import MASKED, MultiHeadAttention, padding_bias, scaled_dot_product_attention
from t2t_revival.model.embedding import SoftmaxKernel

if TYPE_CHECKING:
    from t2t_revival.model.extensions.deterministic_attention import Words


class GrowingCache(NamedTuple):
    """Keys and values of all beams at all positions so far, [batch, heads, memory, key or value]."""

    keys: Any
    values: Any

    def append(self, key: Any, value: Any) -> GrowingCache:
        """Adds those of a position, [batch, heads, beams, key or value]."""
        keys, values = (ops.concatenate(parts, axis=2) for parts in ([self.keys, key], [self.values, value]))
        return GrowingCache(keys, values)


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

    def append(self, key: Any, value: Any) -> FixedCache:
        """Writes those of a position, [batch, heads, beams, key or value]."""
        start = (0, 0, self.place, 0)
        keys, values = ops.slice_update(self.keys, start, key), ops.slice_update(self.values, start, value)
        return FixedCache(keys, values, self.place + ops.shape(key)[2])


class DecoderState(NamedTuple):
    """Decoder state between positions; batch-major except `softmax_kernel`.

    The cache is never moved. The hypotheses of a sentence live in beams, and one may have been in another
    beam at each earlier position. So the cache keeps keys and values of all beams at all positions where they
    were computed, and `self_bias` alone tells which of them each hypothesis descends from. Two beams after
    three positions, the first of which has one beam only:

        memory               0    1    2    3    4
        position             0    1    1    2    2
        keys and values      a    b    c    d    e      in the order in which they were computed
        self_bias, beam 0    0    0    -    0    -      has seen a, b, d
        self_bias, beam 1    0    0    -    -    0      has seen a, b, e: both continue b     (-: MASKED)

    A search that puts one hypothesis in another's place gathers rows of `self_bias` and of `words_emitted`,
    and moves nothing else. The number of beams may change from position to position.

    With a `FixedCache`, memory has room for all positions from the start, and is hidden where nothing is
    written yet. A recurrent unit (`SSRU`) has one vector for each beam, which is gathered too, and no memory.

    Attributes:
        self_caches: of each layer; of a recurrent unit its state, [batch, beams, hidden].
        self_bias: hides from each hypothesis what it does not descend from and, in restricted attention, what
            is too far back; float [batch, beams, memory]. Leading places of memory that are hidden from all
            may be dropped, together with those of the caches.
        encoder_caches: of each layer, of the encoder's output.
        encoder_bias: hides the source's padding, [batch, 1, 1, source].
        softmax_kernel: its matrix is transposed once, not at each position.
        words: of the source, with deterministic attention; else empty.
        words_emitted: number of word tokens in each hypothesis, int32 [batch, beams], with deterministic
            attention; else empty.
    """

    self_caches: list[Any]
    self_bias: Any
    encoder_caches: list[GrowingCache]
    encoder_bias: Any
    softmax_kernel: SoftmaxKernel
    words: Words | tuple[()] = ()
    words_emitted: Any = ()


class Step(NamedTuple):
    """A position, as all layers need to know it.

    Attributes:
        beams: hypotheses of a sentence: so many queries to the same keys.
        position: its number, int [1], counted from 0.
        bias: of self-attention, [batch, 1, beams, memory], the new position included.
        encoder_bias: see `DecoderState`.
    """

    beams: Any
    position: Any
    bias: Any
    encoder_bias: Any

    @property
    def distances(self) -> Any:
        """Positions from the new one to each of memory, 0 or less, int [batch, beams, memory]."""
        return -positions_ago(ops.squeeze(self.bias, 1))


def positions_ago(bias: Any) -> Any:
    """Returns how far memory is behind the newest position, int [batch, beams, memory].

    `bias` shows to each hypothesis one place of each position, from some position on, in their order: what it
    descends from. What it hides has any value.
    """
    shown = ops.cast(bias > MASKED / 2, "int32")
    return ops.sum(shown, axis=2, keepdims=True) - ops.cumsum(shown, axis=2)


@singledispatch
def empty_cache(attention: MultiHeadAttention, batch: Any, beams: Any, positions: int) -> Any:
    """Returns the cache before the first position, which all beams share.

    With `positions`, it has room for as many of `beams` each, and does not grow.
    """
    channels = (size // attention.num_heads for size in (attention.key_channels, attention.value_channels))
    keys, values = (
        ops.zeros((batch, attention.num_heads, positions * beams, size), dtype=attention.compute_dtype)
        for size in channels
    )
    return FixedCache(keys, values, ops.zeros((), "int32")) if positions else GrowingCache(keys, values)


@singledispatch
def next_bias(attention: MultiHeadAttention, bias: Any, batch: Any, beams: Any, cache: Any) -> Any:
    """Returns the bias of the next position, [batch, beams, memory], of which `cache` has none yet."""
    return show_newest(bias, batch, beams, cache)


def show_newest(bias: Any, batch: Any, beams: Any, cache: Any) -> Any:
    """Adds a position at which each beam sees itself only: [batch, beams, memory + beams].

    It is appended, or written into a bias of fixed size at the place of a `FixedCache`.
    """
    beam_diagonal_bias = (1.0 - ops.eye(beams, dtype=keras.config.floatx())) * MASKED
    newest = ops.broadcast_to(beam_diagonal_bias, (batch, beams, beams))
    if isinstance(cache, FixedCache):
        return ops.slice_update(bias, (0, 0, cache.place), newest)
    return ops.concatenate([bias, newest], axis=2)


@singledispatch
def step(attention: MultiHeadAttention, rows: Any, cache: Any, at: Step) -> tuple[Any, Any]:
    """Self-attention of a new position, [batch * beams, hidden] -> the same shape, and its next cache."""
    query, key, value = attention.project(rows, at.beams, at)
    cache = cache.append(key, value)
    heads, _ = attention.attend(query, cache.keys, cache.values, at.bias, at)
    return attention.join(heads), cache


def step_over_encoder(attention: MultiHeadAttention, rows: Any, cache: GrowingCache, at: Step) -> Any:
    """Attention of a new position over the encoder's output, [batch * beams, hidden] -> the same shape."""
    query = attention.project_query(rows, at.beams)
    heads, _ = scaled_dot_product_attention(query, cache.keys, cache.values, at.encoder_bias)
    return attention.join(heads)


def step_layer(layer: Any, x: Any, cache: Any, encoder_cache: GrowingCache, at: Step) -> tuple[Any, Any]:
    """`DecoderLayer.call` of a new position, [batch * beams, hidden]; also the next cache."""
    y = layer.self_attention_residual.preprocess(x)
    y, cache = step(layer.self_attention, y, cache, at)
    x = layer.self_attention_residual(x, y)

    y = layer.encoder_attention_residual.preprocess(x)
    y = step_over_encoder(layer.encoder_attention, y, encoder_cache, at)
    x = layer.encoder_attention_residual(x, y)

    y = layer.feed_forward(layer.feed_forward_residual.preprocess(x))
    return layer.feed_forward_residual(x, y), cache


class IncrementalDecoding:
    """The methods of a `Transformer` that search calls."""

    def start_decoding(self: Any, source: Any, beams: int = 1, positions: int = 0) -> DecoderState:
        """Encodes `source`, ids [batch, source], and returns the state before the first position.

        With `positions`, its shapes are fixed: it has room for as many, of `beams` hypotheses each.
        """
        encoded = self.encode(source)
        batch = ops.shape(source)[0]
        attention = self.deterministic_attention
        layers = self.decoder.layers
        return DecoderState(
            self_caches=[empty_cache(layer.self_attention, batch, beams, positions) for layer in layers],
            self_bias=ops.full((batch, beams, positions * beams), MASKED),
            encoder_caches=[
                GrowingCache(*layer.encoder_attention.project_memory(encoded)) for layer in layers
            ],
            encoder_bias=padding_bias(ops.not_equal(source, 0)),
            softmax_kernel=self.softmax_kernel(),
            words=attention.words(source, encoded) if attention else (),
            words_emitted=ops.zeros((batch, beams), "int32") if attention else (),
        )

    def softmax_kernel(self: Any, ids: Any = None) -> SoftmaxKernel:
        """Returns what makes logits; see `TokenEmbedding.kernel`."""
        return self.softmax_embedding.kernel(ids)

    def decode_step(self: Any, last: Any, position: Any, state: DecoderState) -> tuple[Any, DecoderState]:
        """Returns scores of the token at `position`.

        Args:
            last: ids [batch, beams] of the position before; 0 where `position` is 0.
            position: int scalar, counted from 0.
            state: from `start_decoding` or from the step before.

        Returns:
            Logits, [batch, beams, vocab], and the new state.
        """
        batch, beams = ops.shape(last)
        if self.hparams.start_token:
            last = ops.where(ops.equal(position, 0), self.hparams.start_token, last)
        x = self.target_embedding(ops.reshape(last, (-1,)))  # [batch * beams, hidden]
        position = ops.reshape(position, (1,))
        x = self.target_positions(x, position)
        if self.deterministic_attention:
            words_emitted = state.words_emitted + self.deterministic_attention.stand_for(last)
            vectors = self.deterministic_attention(words_emitted, state.words)  # [batch, beams, hidden]
            x = x + ops.reshape(vectors, (-1, self.hparams.hidden_size))
            state = state._replace(words_emitted=words_emitted)
        layers, caches = self.decoder.layers, []
        self_bias = next_bias(layers[0].self_attention, state.self_bias, batch, beams, state.self_caches[0])
        at = Step(beams, position, ops.expand_dims(self_bias, 1), state.encoder_bias)
        for layer, cache, encoder_cache in zip(layers, state.self_caches, state.encoder_caches, strict=True):
            x, cache = step_layer(layer, x, cache, encoder_cache, at)
            caches.append(cache)
        logits = state.softmax_kernel.logits(self.decoder.finish(x))  # [batch * beams, vocab]
        logits = ops.reshape(logits, (-1, beams, ops.shape(logits)[1]))  # [batch, beams, vocab]
        return logits, state._replace(self_caches=caches, self_bias=self_bias)


class InModelPrecision(keras.layers.Layer):
    """Calls a function as if the model called it.

    Under mixed precision, Keras casts weights only within the `__call__` of a layer that has the
    policy. `start_decoding` and `decode_step` are no `__call__`, so that they would compute in float32.
    """

    def __init__(self, model: Any, function: Callable[[Any], Any]) -> None:
        super().__init__(dtype=model.dtype_policy, name="beam_search")
        self.function = function

    def call(self, ids: Any) -> Any:
        return self.function(ids)
