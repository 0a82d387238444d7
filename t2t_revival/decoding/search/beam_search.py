"""Beam search: section 6.1 of the paper, and T2T's `utils/beam_search.py`.

A hypothesis is *alive* while it has no EOS, and *finished* from then on. At each position (`grow`):

1. `grow_topk` extends the alive hypotheses of a sentence by every token, and keeps the best 2 * beam_size.
   If beam_size of these end with EOS, as many stay alive.
2. `grow_alive` keeps the best beam_size without EOS.
3. `grow_finished` adds those with EOS to the finished ones and keeps the best n, by their `score`, and spare
   ones after them.
4. `is_done` stops the sentence once no alive hypothesis can become better than the worst of these n; or,
   with early stopping, once none would be better if it ended at the next position.

With a beam_size of 1 this is greedy decoding (T2T's `_greedy_infer`): the only candidate is the best token,
and the first EOS ends the output. `grow_greedy` does the same in fewer operations.

A sentence's result does not depend on its batch. In T2T, the longest source of a batch bounds the outputs of
all its sentences; here each sentence has a bound of its own.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.decoding.hypothesis_scores import NEG_INF, TopK, score
from t2t_revival.decoding.search.beams import Beams, Sentences, current_length, select_parents
from t2t_revival.decoding.search.tf_workarounds import log_sum_exp, max_or_one, top_tokens


def grow(
    beams: Beams, logits: Any, sentences: Sentences, allowed: Any = None, *, early_stopping: bool = False
) -> Beams:
    """Extends the hypotheses of all sentences by a position (T2T's `inner_loop`).

    Args:
        beams: hypotheses before the position; only `self_caches`, `self_bias` and `words_emitted` have it.
        logits: [batch, beams, vocab] of the position.
        sentences: the batch.
        allowed: tokens that are allowed, bool [batch, beams, vocab]. `None` allows all.
        early_stopping: see `is_done`.
    """
    topk = grow_topk(beams, logits, sentences.settings.beam_size, allowed)
    alive_seq, alive_log_probs, parents = grow_alive(topk, sentences.settings.beam_size)
    finished_seq, finished_scores = grow_finished(beams, topk, sentences)
    length = current_length(beams) + 1
    done = is_done(alive_log_probs, finished_scores, length, sentences, early_stopping)
    return select_parents(beams, parents)._replace(
        last_ids=alive_seq[:, :, -1],
        alive_seq=alive_seq,
        alive_log_probs=tf.where(done, NEG_INF, alive_log_probs),
        finished_seq=finished_seq,
        finished_scores=finished_scores,
    )


def grow_greedy(beams: Beams, logits: Any, sentences: Sentences, allowed: Any = None) -> Beams:
    """Does what `grow` does if beam_size is 1 for all sentences."""
    logits = tf.cast(logits, tf.float32)
    log_probs, tokens = top_log_probs(logits, 2, allowed)  # [batch, 1, 2]: the second one if the best is PAD
    is_pad = tokens[:, :, 0] == PAD
    log_probs, tokens = (tf.where(is_pad, x[:, :, 1], x[:, :, 0]) for x in (log_probs, tokens))
    log_probs += beams.alive_log_probs  # [batch, 1]
    seq = tf.concat([beams.alive_seq, tf.expand_dims(tokens, 2)], axis=2)

    length = current_length(beams) + 1
    exists = log_probs > NEG_INF
    ends = exists & ((tokens == EOS) | (length >= sentences.max_lengths))
    scores = score(log_probs, length, sentences.settings.score_terms)
    padded = tf.pad(beams.finished_seq, [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
    return beams._replace(
        last_ids=tokens,
        alive_seq=seq,
        alive_log_probs=tf.where(ends, NEG_INF, log_probs),
        finished_seq=tf.where(tf.expand_dims(ends, 2), seq, padded),
        finished_scores=tf.where(ends, scores, beams.finished_scores),
    )


def grow_topk(beams: Beams, logits: Any, beam_size: Any, allowed: Any) -> TopK:
    """Returns the 2 * beam_size best one-token extensions of each sentence's alive hypotheses.

    With a beam_size of 1, that is the best one alone.
    """
    logits = tf.cast(logits, tf.float32)
    batch, num_beams = tf.shape(logits)[0], tf.shape(logits)[1]
    vocab = logits.shape[-1] or tf.shape(logits)[2]
    num_candidates = tf.where(beam_size > 1, 2 * beam_size, 1)  # of each sentence
    max_candidates = max_or_one(num_candidates)
    # The best of all are among the best of each beam: one more than needed, since PAD may be one of them.
    k = tf.minimum(max_candidates + 1, vocab)
    best, tokens = top_log_probs(logits, k, allowed)
    log_probs = tf.expand_dims(beams.alive_log_probs, 2) + tf.where(tokens == PAD, NEG_INF, best)

    flat = [batch, num_beams * k]
    log_probs, places = tf.math.top_k(
        tf.reshape(log_probs, flat), tf.minimum(max_candidates, num_beams * k)
    )  # [batch, candidates]
    tokens = tf.gather(tf.reshape(tokens, flat), places, batch_dims=1)
    parents = places // k
    alive_seq = tf.gather(beams.alive_seq, parents, batch_dims=1)
    seq = tf.concat([alive_seq, tf.expand_dims(tokens, 2)], axis=2)
    return TopK(seq, keep_first(log_probs, num_candidates), tokens == EOS, parents)


def top_log_probs(logits: Any, k: Any, allowed: Any) -> tuple[Any, Any]:
    """Returns log-probabilities and ids of the k best allowed tokens, both [batch, beams, k], best first.

    Log-probabilities are those among all tokens of `logits`, float32 [batch, beams, vocab]; scores stay the
    model's. For `allowed`, see `grow`.
    """
    values, tokens, log_sum = top_logits(logits, k, allowed)
    return values - log_sum, tokens


def top_logits(logits: Any, k: Any, allowed: Any) -> tuple[Any, Any, Any]:
    """Returns logits and ids of the k best allowed tokens, and the log-sum-exp of all, [batch, beams, 1]."""
    if allowed is None:
        values, tokens = top_tokens(logits, k)
        return values, tokens, log_sum_exp(logits, values, tokens)
    values, tokens = top_tokens(tf.where(allowed, logits, NEG_INF), k)
    return values, tokens, tf.reduce_logsumexp(logits, axis=2, keepdims=True)


def grow_alive(topk: TopK, beam_size: Any) -> tuple[Any, Any, Any]:
    """Returns tokens, log-probabilities and parents of the beam_size best candidates without EOS."""
    k = tf.minimum(max_or_one(beam_size), tf.shape(topk.seq)[1])  # a small vocabulary has few candidates
    log_probs, best = tf.math.top_k(tf.where(topk.finished, NEG_INF, topk.log_probs), k)
    seq, parents = (tf.gather(x, best, batch_dims=1) for x in (topk.seq, topk.parents))
    return seq, keep_first(log_probs, beam_size), parents


def grow_finished(beams: Beams, topk: TopK, sentences: Sentences) -> tuple[Any, Any]:
    """Returns tokens and scores of the n best of the finished hypotheses and the candidates with EOS.

    At the maximum length, candidates without EOS count too if the sentence has nothing with EOS.
    """
    length = current_length(beams) + 1
    exists = topk.log_probs > NEG_INF
    newly_finished = tf.reduce_any(topk.finished & exists, axis=1, keepdims=True)  # [batch, 1]
    cut = (length >= sentences.max_lengths) & ~(newly_finished | (beams.finished_scores[:, :1] > NEG_INF))
    scores = score(topk.log_probs, length, sentences.settings.score_terms)
    scores = tf.where((topk.finished | cut) & exists, scores, NEG_INF)

    padded = tf.pad(beams.finished_seq, [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
    scores, best = tf.math.top_k(
        tf.concat([beams.finished_scores, scores], axis=1), tf.shape(beams.finished_scores)[1]
    )
    return tf.gather(tf.concat([padded, topk.seq], axis=1), best, batch_dims=1), scores


def is_done(
    alive_log_probs: Any, finished_scores: Any, length: Any, sentences: Sentences, early_stopping: bool
) -> Any:
    """Returns which sentences need no further position, bool [batch, 1] (T2T's `_is_finished`).

    A sentence is done when its n-th finished score is as good as the best one that an alive hypothesis can
    still reach; with early stopping, when it is as good as those of hypotheses that end at the next position.
    """
    longest = None if early_stopping else sentences.max_lengths
    best_possible = score(alive_log_probs[:, :1], length + 1, sentences.settings.score_terms, longest)
    worst_finished = tf.gather(finished_scores, sentences.num_outputs - 1, batch_dims=1)
    return (length >= sentences.max_lengths) | (best_possible <= worst_finished)


def keep_first(rows: Any, count: Any) -> Any:
    """Replaces all but the first `count` of [batch, width] by `NEG_INF`; a scalar count is the width."""
    if count.shape.rank == 0:
        return rows
    return tf.where(tf.range(tf.shape(rows)[1]) < count, rows, NEG_INF)
