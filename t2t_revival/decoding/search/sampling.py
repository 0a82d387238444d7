"""Sampling: outputs drawn from the model (T2T's `sampling_method="random"`), by the loop of beam search."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.decoding.engine import ALL, Draws, Inputs
from t2t_revival.decoding.hypothesis_scores import NEG_INF, score
from t2t_revival.decoding.search.beams import Beams, Sentences, current_length, select_parents
from t2t_revival.decoding.search.constraints import max_output_lengths
from t2t_revival.decoding.search.tf_workarounds import max_or_one, top_tokens


def draws_in_graph(inputs: Inputs, seeds: Any, temperature: Any, keep_top_k: Any) -> Draws:
    """Returns random numbers for `settings.n` samples of each sentence.

    Args:
        inputs: of the sampling, without draws and prefixes.
        seeds: int32 [batch, 1], at least 0. A sentence's samples depend on its own seed, not on the batch.
            They are others than those that `draws_of_lines` has for this seed.
        temperature: see `Draws`.
        keep_top_k: see `Draws`.
    """
    longest = max_or_one(max_output_lengths(inputs.ids, inputs.settings.extra_length, None))
    return Draws(uniform_in_graph(seeds, longest, max_or_one(inputs.settings.n)), temperature, keep_top_k)


def uniform_in_graph(seeds: Any, positions: Any, n: Any) -> Any:
    """Random numbers of [0, 1), float32 [batch, positions, n].

    A sample's numbers depend on its place of n and on the seed of its sentence, int32 [batch, 1].
    """
    batch = tf.shape(seeds)[0]
    places = tf.tile(tf.range(n), [batch])
    pairs = tf.stack([tf.repeat(seeds[:, 0], n), places], axis=1)  # [batch * n, 2]
    numbers = tf.map_fn(
        lambda pair: tf.random.stateless_uniform([positions], pair), pairs, fn_output_signature=tf.float32
    )
    return tf.transpose(tf.reshape(numbers, [batch, n, positions]), [0, 2, 1])


def grow_samples(beams: Beams, logits: Any, sentences: Sentences, allowed: Any = None) -> Beams:
    """Extends each sample by a token, as `beam_search.grow` does; samples with EOS are padded.

    A sentence has one hypothesis before the first token, and n from then on.
    """
    draws = sentences.draws
    batch, n, width = tf.shape(logits)[0], tf.shape(draws.uniforms)[2], tf.shape(logits)[1]
    parents = tf.tile(tf.minimum(tf.range(n), width - 1)[None], [batch, 1])  # [batch, n]
    done = ~(beams.alive_log_probs[:, :1] > NEG_INF)  # [batch, 1]
    before = tf.gather(beams.alive_seq, parents, batch_dims=1)  # [batch, n, length]
    padded = tf.reduce_any(before == EOS, axis=2) | done  # [batch, n]

    uniforms = draws.uniforms[:, current_length(beams)]
    settings = draws.temperature, draws.keep_top_k
    tokens, log_probs = draw(tf.cast(logits, tf.float32), uniforms, allowed, *settings)
    tokens = tf.where(padded, PAD, tokens)
    log_probs = beams.alive_log_probs + tf.where(padded, 0.0, log_probs)
    seq = tf.concat([before, tokens[:, :, None]], axis=2)
    all_ended = tf.reduce_all(padded | (tokens == EOS), axis=1, keepdims=True)  # [batch, 1]
    now_done = all_ended | (current_length(beams) + 1 >= sentences.max_lengths)

    scores = score(log_probs, tf.math.count_nonzero(seq, axis=2), sentences.settings.score_terms)
    scores = tf.where(log_probs > NEG_INF, scores, NEG_INF)
    return select_parents(beams, parents)._replace(
        last_ids=tokens,
        alive_seq=seq,
        alive_log_probs=tf.where(now_done, NEG_INF, log_probs),
        finished_seq=seq,
        finished_scores=tf.where(done, beams.finished_scores, scores),
    )


def draw(logits: Any, uniforms: Any, allowed: Any, temperature: Any, keep_top_k: Any) -> tuple[Any, Any]:
    """Draws tokens; returns them and their log-probabilities by the model, both [batch, n].

    Args:
        logits: float32 [batch, width, vocab]; `width` is n, or 1 if all n are drawn from one distribution.
        uniforms: random numbers of [0, 1), float32 [batch, n].
        allowed: see `beam_search.grow`.
        temperature: see `Draws`.
        keep_top_k: see `Draws`.
    """
    log_sum = tf.reduce_logsumexp(logits, axis=2, keepdims=True)  # of all tokens: scores stay the model's
    drawable = tf.range(logits.shape[-1]) != PAD
    logits = tf.where(drawable if allowed is None else drawable & allowed, logits, NEG_INF)
    kept = keep_most_probable(logits, keep_top_k) / tf.reshape(temperature, [-1, 1, 1])

    # In float64, no number reaches the whole sum, so that a token of probability 0 is never drawn.
    cumulative = tf.cumsum(tf.cast(tf.nn.softmax(kept), tf.float64), axis=2)
    cumulative = tf.reshape(cumulative, [tf.size(log_sum), logits.shape[-1]])  # [batch * width, vocab]
    points = tf.reshape(tf.cast(uniforms, tf.float64), [tf.size(log_sum), -1]) * cumulative[:, -1:]
    tokens = tf.searchsorted(cumulative, points, side="right")  # [batch * width, n / width]
    tokens = tf.minimum(tokens, logits.shape[-1] - 1)  # for weights that contain NaN
    chosen = tf.gather(tf.reshape(logits, tf.shape(cumulative)), tokens, batch_dims=1)
    log_probs = chosen - tf.reshape(log_sum, [-1, 1])
    return tf.reshape(tokens, tf.shape(uniforms)), tf.reshape(log_probs, tf.shape(uniforms))


def keep_most_probable(logits: Any, k: Any) -> Any:
    """Sets all but the k largest of [batch, width, vocab] to `NEG_INF`; equals of the last one stay.

    Args:
        logits: float32 [batch, width, vocab].
        k: int32 scalar or [batch, 1]; `ALL` keeps all.
    """
    vocab = logits.shape[-1]
    k = tf.reshape(tf.where(k == ALL, vocab, tf.minimum(k, vocab)), [-1, 1, 1])
    most = tf.reduce_max(tf.where(k < vocab, k, 1))

    def kept() -> Any:
        values, _ = top_tokens(logits, most)
        is_last = tf.range(1, most + 1) == tf.minimum(k, most)  # [batch or 1, 1, most]
        least = tf.reduce_sum(tf.where(is_last, values, 0.0), axis=2, keepdims=True)
        return tf.where((k == vocab) | (logits >= least), logits, NEG_INF)

    return tf.cond(tf.reduce_any(k < vocab), kept, lambda: logits)
