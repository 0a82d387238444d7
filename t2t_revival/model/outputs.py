"""Tuples that a `Transformer` returns; `DecoderState` explains the cache that is never moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from t2t_revival.model.attention import Cache
    from t2t_revival.model.extensions.deterministic_attention import Words


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
    and moves nothing else. The next position appends its beams to memory (`MultiHeadAttention.next_bias`).
    The number of beams may change from position to position.

    Shapes may also be fixed (`Transformer.start_decoding`): memory then has room for all positions from the
    start, each of as many beams, is hidden where nothing is written yet, and the next position is written
    into it (`FixedCache`).

    A recurrent unit in the place of self-attention (`SSRU`) has one vector for each beam, which is gathered
    too, and `self_bias` has no memory.

    Attributes:
        self_caches: K and V of each layer, of all beams at all positions so far,
            [batch, heads, memory, key or value], or a `FixedCache`; of a recurrent unit its state,
            [batch, beams, hidden].
        self_bias: hides from each hypothesis what it does not descend from and, in restricted attention, what
            is too far back; float [batch, beams, memory]. Leading places of memory that are hidden from all
            may be dropped, together with those of the caches.
        encoder_caches: K and V of the encoder's output, of each layer, [batch, heads, source, key or value].
        encoder_bias: hides the source's padding, [batch, 1, 1, source].
        softmax_kernel: the matrix before the softmax, [hidden, vocab]: transposed once, not at each position.
        words: of the source, with deterministic attention; else empty.
        words_emitted: number of word tokens in each hypothesis, int32 [batch, beams], with deterministic
            attention; else empty.
    """

    self_caches: list[Any]
    self_bias: Any
    encoder_caches: list[Cache]
    encoder_bias: Any
    softmax_kernel: Any
    words: Words | tuple[()] = ()
    words_emitted: Any = ()


class AttentionWeights(NamedTuple):
    """Attention weights, float32 [batch, layers, heads, query, memory]; over memory the sum is 1.

    Attributes:
        encoder: source positions over source positions.
        decoder: target positions over the targets before them: memory 0 is the start, memory m target m - 1.
        encoder_decoder: target positions over source positions.
    """

    encoder: Any
    decoder: Any
    encoder_decoder: Any
