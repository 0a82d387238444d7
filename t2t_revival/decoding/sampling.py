"""Sampling: outputs drawn from the model (T2T's `sampling_method="random"`), by the loop of beam search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.decoding.beam_search import length_penalty
from t2t_revival.decoding.beams import (
    NEG_INF,
    Beams,
    Sentences,
    current_length,
    search_settings,
    select_parents,
)
from t2t_revival.decoding.constraints import TreeConstraint, max_output_lengths
from t2t_revival.decoding.decoding_loop import DecodingLoop
from t2t_revival.decoding.tf_workarounds import top_tokens
from t2t_revival.model import Transformer

ALL = -1  # value of keep_top_k


class Sampler:
    """Draws outputs token by token, each from the model's distribution after the tokens before it.

    Args:
        model: the model.
        temperature: divides the logits; the nearer to 0, the more often the most probable token is drawn.
        keep_top_k: number of most probable tokens to draw from. `ALL` draws from all.
        constant_weights: see `BeamSearch`.
        constraint: see `BeamSearch`; only allowed tokens are drawn.
        weights: see `DecodingLoop`.

    Raises:
        T2TError: the Keras backend is not TensorFlow.

    Example:
        ids, scores = Sampler(model, temperature=0.8)(source_ids, lines=[1, 2], seed=3, n=5)
    """

    def __init__(
        self,
        model: Transformer,
        temperature: float = 1.0,
        keep_top_k: int = ALL,
        constant_weights: bool = False,
        constraint: TreeConstraint | None = None,
        weights: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> None:
        grow = partial(grow_samples, temperature=temperature, keep_top_k=keep_top_k)
        self._loop = DecodingLoop(model, grow, constant_weights, constraint, weights, samples=True)

    def __call__(
        self,
        source_ids: Any,
        lines: Sequence[int],
        seed: int = 0,
        alpha: float = 0.6,
        extra_length: int = 50,
        n: int = 1,
        prefixes: Any = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Draws n outputs of each sentence.

        Args:
            source_ids: see `BeamSearch`.
            lines: a number for each sentence, at least 0. Outputs depend on it, on the seed, on n and on the
                sentence, but not on the batch.
            seed: at least 0.
            alpha: exponent of the length penalty; changes scores only.
            extra_length: see `BeamSearch`.
            n: outputs of a sentence.
            prefixes: see `BeamSearch`.

        Returns:
            Ids and scores as `BeamSearch`, in the order in which they were drawn. Scores are made of the
            model's probabilities, whatever the temperature. An output of maximum length may have no EOS.
        """
        longest = int(tf.reduce_max(max_output_lengths(source_ids, extra_length, prefixes)))
        settings = search_settings(n, alpha, extra_length, n)
        return self._loop.run(source_ids, settings, prefixes, uniform(seed, lines, longest, n))


def uniform(seed: int, lines: Sequence[int], positions: int, n: int) -> np.ndarray:
    """Random numbers of [0, 1), float32 [lines, positions, n]; a line's do not depend on the other lines."""
    return np.stack(
        [np.random.default_rng((seed, line)).random((positions, n), np.float32) for line in lines]
    )


def grow_samples(
    beams: Beams,
    logits: Any,
    sentences: Sentences,
    allowed: Any = None,
    *,
    temperature: float,
    keep_top_k: int,
) -> Beams:
    """Extends each sample by a token, as `beam_search.grow` does; samples with EOS are padded.

    A sentence has one hypothesis before the first token, and n from then on.
    """
    batch, n, width = tf.shape(logits)[0], tf.shape(sentences.uniforms)[2], tf.shape(logits)[1]
    parents = tf.tile(tf.minimum(tf.range(n), width - 1)[None], [batch, 1])  # [batch, n]
    done = ~(beams.alive_log_probs[:, :1] > NEG_INF)  # [batch, 1]
    before = tf.gather(beams.alive_seq, parents, batch_dims=1)  # [batch, n, length]
    padded = tf.reduce_any(before == EOS, axis=2) | done  # [batch, n]

    uniforms = sentences.uniforms[:, current_length(beams)]
    tokens, log_probs = draw(tf.cast(logits, tf.float32), uniforms, allowed, temperature, keep_top_k)
    tokens = tf.where(padded, PAD, tokens)
    log_probs = beams.alive_log_probs + tf.where(padded, 0.0, log_probs)
    seq = tf.concat([before, tokens[:, :, None]], axis=2)
    all_ended = tf.reduce_all(padded | (tokens == EOS), axis=1, keepdims=True)  # [batch, 1]
    now_done = all_ended | (current_length(beams) + 1 >= sentences.max_lengths)

    penalty = length_penalty(tf.math.count_nonzero(seq, axis=2), sentences.settings.alpha)
    scores = tf.where(log_probs > NEG_INF, log_probs / penalty, NEG_INF)
    return select_parents(beams, parents)._replace(
        last_ids=tokens,
        alive_seq=seq,
        alive_log_probs=tf.where(now_done, NEG_INF, log_probs),
        finished_seq=seq,
        finished_scores=tf.where(done, beams.finished_scores, scores),
    )


def draw(logits: Any, uniforms: Any, allowed: Any, temperature: float, keep_top_k: int) -> tuple[Any, Any]:
    """Draws tokens; returns them and their log-probabilities by the model, both [batch, n].

    Args:
        logits: float32 [batch, width, vocab]; `width` is n, or 1 if all n are drawn from one distribution.
        uniforms: random numbers of [0, 1), float32 [batch, n].
        allowed: see `beam_search.grow`.
        temperature: see `Sampler`.
        keep_top_k: see `Sampler`.
    """
    vocab = logits.shape[-1]
    log_sum = tf.reduce_logsumexp(logits, axis=2)  # of all tokens: scores stay the model's
    drawable = tf.range(vocab) != PAD
    logits = tf.where(drawable if allowed is None else drawable & allowed, logits, NEG_INF)
    k = vocab if keep_top_k == ALL else min(keep_top_k, vocab)
    values, ids = (logits, None) if k == vocab else top_tokens(logits, k)

    rows = tf.size(log_sum)  # batch * width
    values, log_sum = tf.reshape(values, [rows, k]), tf.reshape(log_sum, [rows, 1])
    # In float64, no number reaches the whole sum, so that a token of probability 0 is never drawn.
    cumulative = tf.cumsum(tf.cast(tf.nn.softmax(values / temperature), tf.float64), axis=1)
    points = tf.reshape(tf.cast(uniforms, tf.float64), [rows, -1]) * cumulative[:, -1:]
    places = tf.searchsorted(cumulative, points, side="right")  # [rows, n / width]
    places = tf.minimum(places, k - 1)  # for weights that contain NaN
    log_probs = tf.gather(values, places, batch_dims=1) - log_sum
    tokens = places if ids is None else tf.gather(tf.reshape(ids, [rows, k]), places, batch_dims=1)
    return tf.reshape(tokens, tf.shape(uniforms)), tf.reshape(log_probs, tf.shape(uniforms))
