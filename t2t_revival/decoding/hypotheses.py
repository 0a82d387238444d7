"""Section 6.1: the hypotheses of a beam search, and how they grow by a position."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary import EOS, PAD
from t2t_revival.decoding.top_tokens import top_tokens
from t2t_revival.model import DecoderState

NEVER = -np.inf  # log-probability of what is no hypothesis


def length_penalty(length: Any, alpha: Any) -> Any:
    """((5 + length) / 6)^alpha (Wu et al., 2016); `length` in tokens, EOS included."""
    return tf.pow((5.0 + tf.cast(length, tf.float32)) / 6.0, alpha)


class SearchSettings(NamedTuple):
    """What a search is asked for, as tensors: scalars, or [batch], a value for each sentence.

    Attributes:
        beam_size: hypotheses kept per sentence, int32.
        alpha: exponent of the length penalty, float32; 0: none.
        extra_length: how many tokens longer than its source an output may be, int32.
        n: outputs returned per sentence, at most `beam_size`; int32.
    """

    beam_size: Any
    alpha: Any
    extra_length: Any
    n: Any


class Sentences(NamedTuple):
    """What does not change from position to position; the first dimension of everything is the batch.

    Attributes:
        number: the sentence's place among all, int32 [batch].
        limits: most tokens of its output, int32 [batch].
        settings: scalars, or [batch].
        encoder_caches: see `DecoderState`.
        encoder_bias: see `DecoderState`.
        facts: what a constraint knows of the sentence, such as how many words it has; else empty.
        source_words: see `words` of `DecoderState`.
        draws: what outputs are drawn with, float32 [batch, position, n]; empty where they are searched for.
    """

    number: Any
    limits: Any
    settings: SearchSettings
    encoder_caches: Any
    encoder_bias: Any
    facts: Any = ()
    source_words: Any = ()
    draws: Any = ()


class Beams(NamedTuple):
    """Hypotheses between two positions; both sets are sorted, best first.

    Attributes:
        last: last token of each alive hypothesis, int32 [batch, beams].
        alive_ids: int32 [batch, beams, position].
        alive_log_probs: float32 [batch, beams]; NEVER: no hypothesis there.
        finished_ids: int32 [batch, n, position], each ends with EOS and is padded with 0.
        finished_scores: log-probability / length penalty, float32 [batch, n]; NEVER as above.
        self_bias: see `DecoderState`.
        self_caches: see `DecoderState`.
        said: see `DecoderState`.
    """

    last: Any
    alive_ids: Any
    alive_log_probs: Any
    finished_ids: Any
    finished_scores: Any
    self_bias: Any
    self_caches: Any
    said: Any = ()


class Results(NamedTuple):
    """The best outputs so far of all sentences: ids [all, n, position], scores [all, n]."""

    ids: Any
    scores: Any


def start(limits: Any, n: Any, state: DecoderState) -> Beams:
    """One hypothesis without tokens per sentence; none where the limit is 0."""
    batch = tf.shape(limits)[0]
    return Beams(
        last=tf.zeros([batch, 1], tf.int32),
        alive_ids=tf.zeros([batch, 1, 0], tf.int32),
        alive_log_probs=tf.where(limits > 0, 0.0, NEVER)[:, None],
        finished_ids=tf.zeros([batch, n, 0], tf.int32),
        finished_scores=tf.fill([batch, n], NEVER),
        self_bias=state.self_bias,
        self_caches=state.self_caches,
        said=state.said,
    )


def alive(beams: Beams) -> Any:
    """How many sentences are not done, int32 scalar."""
    return tf.math.count_nonzero(beams.alive_log_probs[:, 0] > NEVER, dtype=tf.int32)


def position(beams: Beams) -> Any:
    """How many tokens an alive hypothesis has, int32 scalar."""
    return tf.shape(beams.alive_ids)[2]


def advance(beams: Beams, logits: Any, sentences: Sentences, allowed: Any = None) -> Beams:
    """One position further.

    Args:
        beams: before the position, but for `self_caches`, `self_bias` and `said`, which have it.
        logits: [batch, beams, vocab] of the position.
        sentences: of the batch.
        allowed: which tokens may come, bool [batch, beams, vocab]; None: any.
    """
    limits, settings = sentences.limits, sentences.settings
    length = position(beams) + 1
    at_limit = length >= limits  # [batch]
    penalty = _column(length_penalty(length, settings.alpha))
    ids, log_probs, parents = _candidates(beams, logits, settings.beam_size, allowed)
    ended = tf.equal(ids[:, :, -1], EOS)

    width = tf.minimum(largest(settings.beam_size), tf.shape(ids)[1])  # a small vocabulary has few candidates
    alive_log_probs, kept = tf.math.top_k(tf.where(ended, NEVER, log_probs), width)
    alive_log_probs = first(alive_log_probs, settings.beam_size)
    alive_ids = tf.gather(ids, kept, batch_dims=1)
    parents = tf.gather(parents, kept, batch_dims=1)  # [batch, beams]

    finished = (beams.finished_scores[:, 0] > NEVER) | tf.reduce_any(ended & (log_probs > NEVER), axis=1)
    outputs = (ended | (at_limit & ~finished)[:, None]) & (log_probs > NEVER)  # [batch, candidates]
    scores = tf.concat([beams.finished_scores, tf.where(outputs, log_probs / penalty, NEVER)], axis=1)
    finished_scores, kept = tf.math.top_k(scores, tf.shape(beams.finished_scores)[1])
    padded = tf.pad(beams.finished_ids, [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
    finished_ids = tf.gather(tf.concat([padded, ids], axis=1), kept, batch_dims=1)

    bound = alive_log_probs[:, 0] / _bounding_penalty(length, limits, settings.alpha)
    last = tf.zeros_like(limits) + settings.n - 1  # [batch]
    done = at_limit | (bound <= tf.gather(finished_scores, last, batch_dims=1))
    return Beams(
        last=alive_ids[:, :, -1],
        alive_ids=alive_ids,
        alive_log_probs=tf.where(done[:, None], NEVER, alive_log_probs),
        finished_ids=finished_ids,
        finished_scores=finished_scores,
        self_bias=tf.gather(beams.self_bias, parents, batch_dims=1),
        self_caches=beams.self_caches,
        said=tf.nest.map_structure(lambda x: tf.gather(x, parents, batch_dims=1), beams.said),
    )


def largest(values: Any) -> Any:
    """Of one value or one for each sentence; at least 1, since TensorFlow refuses 0 where there is none."""
    return tf.maximum(tf.reduce_max(values), 1)


def _column(x: Any) -> Any:
    """[batch] -> [batch, 1]; a scalar stays one."""
    return x if x.shape.rank == 0 else x[:, None]


def first(values: Any, count: Any) -> Any:
    """[batch, width], NEVER from place `count`, [batch], on; a scalar count is the width: all stays."""
    if count.shape.rank == 0:
        return values
    return tf.where(tf.range(tf.shape(values)[1]) < count[:, None], values, NEVER)


def _bounding_penalty(length: Any, limits: Any, alpha: Any) -> Any:
    """The length penalty at which what is alive could still score best, [batch].

    Log-probabilities only fall: the largest penalty is the best, and it grows with the length where alpha
    is positive.
    """
    best = tf.where(alpha >= 0, limits, length + 1)
    return length_penalty(best, alpha)


def _candidates(beams: Beams, logits: Any, beam_size: Any, allowed: Any) -> tuple[Any, Any, Any]:
    """The 2 * beam_size best continuations of each sentence, so that beam_size are left if as many end.

    Returns:
        Ids [batch, candidates, position + 1], log-probabilities [batch, candidates], and the beam that each
        continues, [batch, candidates].
    """
    logits = tf.cast(logits, tf.float32)
    batch, width, vocab = tf.shape(logits)[0], tf.shape(logits)[1], logits.shape[-1]
    wanted = 2 * largest(beam_size)  # of a sentence
    # One more than can be needed, since PAD may be among them; never the whole vocabulary's log-softmax.
    tops = tf.minimum(wanted + 1, vocab)
    top, tokens = top_tokens(logits if allowed is None else tf.where(allowed, logits, NEVER), tops)
    if allowed is None:
        # The best token's probability is no underflow, and its logarithm gives that of all others.
        best = tf.gather(tf.nn.softmax(logits), tokens[:, :, :1], batch_dims=2)  # [batch, beams, 1]
        log_sum = top[:, :, :1] - tf.math.log(best)
    else:
        log_sum = tf.reduce_logsumexp(logits, axis=2, keepdims=True)  # of all tokens: scores stay the model's
    log_probs = beams.alive_log_probs[:, :, None] + tf.where(tokens == PAD, NEVER, top - log_sum)

    flat = [batch, width * tops]
    log_probs, places = tf.math.top_k(tf.reshape(log_probs, flat), tf.minimum(wanted, width * tops))
    log_probs = first(log_probs, 2 * beam_size)
    tokens = tf.gather(tf.reshape(tokens, flat), places, batch_dims=1)
    parents = places // tops  # [batch, candidates]
    before = tf.gather(beams.alive_ids, parents, batch_dims=1)
    return tf.concat([before, tokens[:, :, None]], axis=2), log_probs, parents
