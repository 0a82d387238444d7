"""State of decoding: the sentences of the batch, and their hypotheses."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from t2t_revival.decoding.addons import addon
from t2t_revival.decoding.engine import SearchSettings
from t2t_revival.decoding.hypothesis_scores import NEG_INF, is_active
from t2t_revival.model import DecoderState


class Sentences(NamedTuple):
    """Sentences of the batch: all that is the same at each position; batch-major.

    Attributes:
        indices: rows of the sentences in `Results`, int32 [batch, 1].
        max_lengths: maximum number of tokens of each output, int32 [batch, 1].
        min_lengths: minimum number of tokens of each output, int32 [batch, 1]; empty without guards.
        num_outputs: outputs returned, without spare ones, int32 [batch, 1].
        settings: see `SearchSettings`.
        encoder_caches: see `DecoderState`.
        encoder_bias: see `DecoderState`.
        source_words: see `words` of `DecoderState`.
        constraint_inputs: input of the constraint for each sentence, such as its number of words; else empty.
        draws: see `Draws`; empty if nothing is drawn.
        lexical: see `LexicalTables`; empty if outputs need no phrases.
    """

    indices: Any
    max_lengths: Any
    min_lengths: Any
    num_outputs: Any
    settings: SearchSettings
    encoder_caches: Any
    encoder_bias: Any
    source_words: Any
    constraint_inputs: Any
    draws: Any
    lexical: Any = ()


class Beams(NamedTuple):
    """Hypotheses between two positions, as in T2T: alive ones without EOS, and finished ones.

    Attributes:
        last_ids: last token of each alive hypothesis, int32 [batch, beams].
        alive_seq: tokens, int32 [batch, beams, length].
        alive_log_probs: float32 [batch, beams]; `NEG_INF` marks an unused place, and in the first one a
            sentence that is done.
        finished_seq: tokens, int32 [batch, n + spare, length]; each ends with EOS and is padded with 0.
        finished_scores: float32 [batch, n + spare]; `NEG_INF` as above.
        self_bias: see `DecoderState`.
        self_caches: see `DecoderState`.
        words_emitted: see `DecoderState`.
        lexical: see `LexicalState`; empty if outputs need no phrases.
    """

    last_ids: Any
    alive_seq: Any
    alive_log_probs: Any
    finished_seq: Any
    finished_scores: Any
    self_bias: Any
    self_caches: Any
    words_emitted: Any
    lexical: Any = ()


class Results(NamedTuple):
    """Best outputs so far of all sentences: seq, int32 [all, n, length], and scores, float32 [all, n]."""

    seq: Any
    scores: Any


def initial_beams(sentences: Sentences, n: Any, state: DecoderState) -> Beams:
    """Returns one empty hypothesis per sentence, and none where the maximum length is 0."""
    batch = tf.shape(sentences.max_lengths)[0]
    return Beams(
        last_ids=tf.zeros([batch, 1], tf.int32),
        alive_seq=tf.zeros([batch, 1, 0], tf.int32),
        alive_log_probs=tf.where(sentences.max_lengths > 0, 0.0, NEG_INF),
        finished_seq=tf.zeros([batch, n, 0], tf.int32),
        finished_scores=tf.fill([batch, n], NEG_INF),
        self_bias=state.self_bias,
        self_caches=state.self_caches,
        words_emitted=state.words_emitted,
        lexical=addon("start_tables")(sentences.lexical) if sentences.lexical else (),
    )


def select_parents(beams: Beams, parents: Any) -> Beams:
    """Puts hypotheses in their parents' places, [batch, beams]; caches stay, as `DecoderState` explains."""

    def of_parents(x: Any) -> Any:
        is_cache_of_all_beams = x.shape.rank == 4
        return x if is_cache_of_all_beams else tf.gather(x, parents, batch_dims=1)

    of_beams = beams.self_bias, beams.self_caches, beams.words_emitted
    bias, caches, words = tf.nest.map_structure(of_parents, of_beams)
    return beams._replace(self_bias=bias, self_caches=caches, words_emitted=words)


def num_active(beams: Beams) -> Any:
    """Returns how many sentences are not done, int32 scalar."""
    return tf.math.count_nonzero(is_active(beams), dtype=tf.int32)


def current_length(beams: Beams) -> Any:
    """Returns how many tokens an alive hypothesis has, int32 scalar."""
    return tf.shape(beams.alive_seq)[2]
