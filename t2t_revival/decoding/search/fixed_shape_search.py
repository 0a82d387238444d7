"""Beam search in fixed shapes, for compilers that make a program of each shape, as XLA for JAX does.

The algorithm is that of `beam_search`, whose functions have the same names here; for the same model and
settings the outputs are equal. It differs in what changes its shape there:

- Caches have room for all positions from the start, and each position is written into them (`FixedCache`).
- There are beam_size hypotheses at the first position too, of which only one exists.
- A batch is not compacted: it is decoded until its last sentence is done.

Only `keras.ops`: the search is bound to no backend. Without a compiler around it, it is slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from keras import ops, tree

from t2t_revival.data.vocabulary.text_encoder import EOS, PAD
from t2t_revival.decoding.engine import SearchSettings, max_output_length
from t2t_revival.decoding.hypothesis_scores import NEG_INF, TopK, beginning_with, is_active, score
from t2t_revival.model.incremental import DecoderState, FixedCache, InModelPrecision

if TYPE_CHECKING:
    from t2t_revival.decoding.options import DecodeHParams
    from t2t_revival.model import Transformer


class Sentences(NamedTuple):
    """All that is the same at each position.

    Attributes:
        max_lengths: maximum number of tokens of each output, int32 [batch, 1]; 0 without a source.
        settings: of the search; see `search`.
        state: of the model before the first position, with all that it needs of the source.
        early_stopping: see `is_done`.
        banned: see `search`.
    """

    max_lengths: Any
    settings: SearchSettings
    state: DecoderState
    early_stopping: bool
    banned: int


class FixedBeams(NamedTuple):
    """Hypotheses between two positions; see `beams.Beams`.

    Attributes:
        length: tokens of an alive hypothesis, int32 scalar.
        alive_seq: tokens, int32 [batch, beams, positions], padded with 0.
        alive_log_probs: float32 [batch, beams].
        finished_seq: tokens, int32 [batch, n + spare, positions], padded with 0.
        finished_scores: float32 [batch, n + spare].
        self_bias: see `DecoderState`.
        self_caches: see `DecoderState`.
        words_emitted: see `DecoderState`.
    """

    length: Any
    alive_seq: Any
    alive_log_probs: Any
    finished_seq: Any
    finished_scores: Any
    self_bias: Any
    self_caches: Any
    words_emitted: Any


def search(
    model: Transformer,
    source_ids: Any,
    settings: SearchSettings,
    options: DecodeHParams,
    banned: int,
    first: int = PAD,
) -> tuple[Any, Any, Any]:
    """Searches for the best outputs of each sentence.

    Args:
        model: the model, or an `Ensemble`.
        source_ids: int32 [batch, source]; each ends with EOS and is padded with 0. A row of padding only has
            no outputs.
        settings: of the search. Only settings of the score may be tensors.
        options: early stopping and `max_length_factor` are those of all searches.
        banned: a token that no output has; PAD for none.
        first: the token that all outputs begin with; PAD for none.

    Returns:
        Ids, int32 [batch, n + spare, longest output], and scores, float32 [batch, n + spare], as
        `SearchGraph.search` returns them; and the length from which on all ids are 0, int32 scalar.
    """

    def decode(source_ids: Any) -> tuple[Any, Any, Any]:
        lengths = ops.sum(ops.cast(ops.not_equal(source_ids, PAD), "int32"), axis=1, keepdims=True)
        positions = max_output_length(source_ids.shape[1], 0, settings.extra_length, options)
        max_lengths = ops.where(lengths > 0, lengths + settings.extra_length, 0)  # [batch, 1]
        if options.max_length_factor:
            share = ops.ceil(options.max_length_factor * ops.cast(lengths, "float32"))
            max_lengths = ops.minimum(max_lengths, ops.cast(share, "int32"))
        state = model.start_decoding(source_ids, settings.beam_size, positions)
        sentences = Sentences(max_lengths, settings, state, options.early_stopping, banned)

        def step(beams: FixedBeams) -> tuple[FixedBeams]:
            last = ops.take(beams.alive_seq, ops.maximum(beams.length - 1, 0), axis=2)  # [batch, beams]
            before = state._replace(
                self_caches=beams.self_caches, self_bias=beams.self_bias, words_emitted=beams.words_emitted
            )
            logits, after = model.decode_step(last, beams.length, before)
            logits = beginning_with(first, logits, ops.equal(beams.length, 0))
            moved = after.self_caches, after.self_bias, after.words_emitted
            beams = beams._replace(self_caches=moved[0], self_bias=moved[1], words_emitted=moved[2])
            return (grow(beams, logits, sentences),)

        beams = initial_beams(sentences, positions)
        (beams,) = ops.while_loop(lambda beams: ops.any(is_active(beams)), step, (beams,))
        exists = ops.expand_dims(beams.finished_scores > NEG_INF, 2)
        return ops.where(exists, beams.finished_seq, PAD), beams.finished_scores, beams.length

    return InModelPrecision(model, decode)(source_ids)


def initial_beams(sentences: Sentences, positions: int) -> FixedBeams:
    """Returns one empty hypothesis per sentence, and none where the maximum length is 0."""
    state, (beam_size, *_), width = sentences.state, sentences.settings, sentences.settings.width
    batch = ops.shape(sentences.max_lengths)[0]
    first = ops.arange(beam_size) < 1
    return FixedBeams(
        length=ops.zeros((), "int32"),
        alive_seq=ops.full((batch, beam_size, positions), PAD, "int32"),
        alive_log_probs=ops.where(ops.logical_and(first, sentences.max_lengths > 0), 0.0, NEG_INF),
        finished_seq=ops.full((batch, width, positions), PAD, "int32"),
        finished_scores=ops.full((batch, width), NEG_INF, "float32"),
        self_bias=state.self_bias,
        self_caches=state.self_caches,
        words_emitted=state.words_emitted,
    )


def grow(beams: FixedBeams, logits: Any, sentences: Sentences) -> FixedBeams:
    """Extends the hypotheses of all sentences by a position; see `beam_search.grow`."""
    topk = grow_topk(beams, logits, sentences.settings.beam_size, sentences.banned)
    alive_seq, alive_log_probs, parents = grow_alive(topk, sentences.settings.beam_size)
    finished_seq, finished_scores = grow_finished(beams, topk, sentences)
    length = beams.length + 1
    done = is_done(alive_log_probs, finished_scores, length, sentences)
    return select_parents(beams, parents)._replace(
        length=length,
        alive_seq=alive_seq,
        alive_log_probs=ops.where(done, NEG_INF, alive_log_probs),
        finished_seq=finished_seq,
        finished_scores=finished_scores,
    )


def grow_topk(beams: FixedBeams, logits: Any, beam_size: int, banned: int) -> TopK:
    """Returns the best one-token extensions of each sentence's alive hypotheses; see `beam_search`."""
    logits = ops.cast(logits, "float32")  # [batch, beams, vocab]
    num_candidates = 2 * beam_size if beam_size > 1 else 1
    # The best of all are among the best of each beam: one more than needed, since PAD may be one of them.
    k = min(num_candidates + 1, logits.shape[2])
    allowed = logits
    if banned != PAD:
        allowed = ops.where(ops.arange(logits.shape[2]) == banned, NEG_INF, logits)
    values, tokens = ops.top_k(allowed, k)
    best = values - ops.logsumexp(logits, axis=2, keepdims=True)
    log_probs = ops.expand_dims(beams.alive_log_probs, 2) + ops.where(tokens == PAD, NEG_INF, best)

    flat = (-1, beam_size * k)
    log_probs, places = ops.top_k(ops.reshape(log_probs, flat), num_candidates)  # [batch, candidates]
    tokens = gather(ops.cast(ops.reshape(tokens, flat), "int32"), places)
    parents = places // k
    start = (0, 0, beams.length)
    seq = ops.slice_update(gather(beams.alive_seq, parents), start, ops.expand_dims(tokens, 2))
    return TopK(seq, log_probs, tokens == EOS, parents)


def grow_alive(topk: TopK, beam_size: int) -> tuple[Any, Any, Any]:
    """Returns tokens, log-probabilities and parents of the beam_size best candidates without EOS."""
    log_probs, best = ops.top_k(ops.where(topk.finished, NEG_INF, topk.log_probs), beam_size)
    return gather(topk.seq, best), log_probs, gather(topk.parents, best)


def grow_finished(beams: FixedBeams, topk: TopK, sentences: Sentences) -> tuple[Any, Any]:
    """Returns tokens and scores of the n best finished hypotheses; see `beam_search.grow_finished`."""
    length = beams.length + 1
    exists = topk.log_probs > NEG_INF
    newly_finished = ops.any(ops.logical_and(topk.finished, exists), axis=1, keepdims=True)  # [batch, 1]
    has_finished = ops.logical_or(newly_finished, beams.finished_scores[:, :1] > NEG_INF)
    cut = ops.logical_and(length >= sentences.max_lengths, ops.logical_not(has_finished))
    counts = ops.logical_and(ops.logical_or(topk.finished, cut), exists)
    scores = ops.where(counts, score(topk.log_probs, length, sentences.settings.score_terms), NEG_INF)
    all_scores = ops.concatenate([beams.finished_scores, scores], axis=1)
    scores, best = ops.top_k(all_scores, beams.finished_scores.shape[1])
    return gather(ops.concatenate([beams.finished_seq, topk.seq], axis=1), best), scores


def is_done(alive_log_probs: Any, finished_scores: Any, length: Any, sentences: Sentences) -> Any:
    """Returns which sentences need no further position, bool [batch, 1]; see `beam_search.is_done`."""
    longest = None if sentences.early_stopping else sentences.max_lengths
    best_possible = score(alive_log_probs[:, :1], length + 1, sentences.settings.score_terms, longest)
    n = sentences.settings.n
    return ops.logical_or(length >= sentences.max_lengths, best_possible <= finished_scores[:, n - 1 : n])


def select_parents(beams: FixedBeams, parents: Any) -> FixedBeams:
    """Puts hypotheses in their parents' places, [batch, beams]; caches stay, as `DecoderState` explains."""
    caches = [
        cache if isinstance(cache, FixedCache) else gather(cache, parents) for cache in beams.self_caches
    ]
    words = tree.map_structure(lambda x: gather(x, parents), beams.words_emitted)
    return beams._replace(self_bias=gather(beams.self_bias, parents), self_caches=caches, words_emitted=words)


def gather(x: Any, places: Any) -> Any:
    """Gathers from the second axis: [batch, width, ...] at int [batch, count] -> [batch, count, ...]."""
    return ops.take_along_axis(x, ops.reshape(places, (*places.shape, *[1] * (len(x.shape) - 2))), axis=1)
