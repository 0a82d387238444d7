"""Outputs drawn from the model (T2T's `sampling_method="random"`), on the search's rounds and caches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary import EOS, PAD
from t2t_revival.decoding.beam_search import IDS, SETTINGS, BeamSearch, found, settings_of
from t2t_revival.decoding.hypotheses import NEVER, Beams, Sentences, length_penalty, position
from t2t_revival.decoding.prefixes import most_tokens
from t2t_revival.decoding.top_tokens import top_tokens

if TYPE_CHECKING:
    from t2t_revival.decoding.tree_constraint import TreeConstraint
    from t2t_revival.model import Transformer

ALL = -1  # for keep_top_k
DRAWS = tf.TensorSpec([None, None, None], tf.float32)


class Sampler:
    """Draws outputs token by token, each from the model's distribution after the tokens before it.

    Args:
        model: decoded as it is.
        temperature: logits are divided by it; the nearer to 0, the more often the likeliest token comes.
        keep_top_k: tokens are drawn from the k likeliest; `ALL`: from all.
        frozen: see `BeamSearch`.
        constraint: see `BeamSearch`; tokens are drawn from those that are allowed.

    Raises:
        T2TError: as `BeamSearch`.

    Example:
        ids, scores = Sampler(model, temperature=0.8)(source_ids, lines=[1, 2], seed=3, n=5)
    """

    def __init__(
        self,
        model: Transformer,
        temperature: float = 1.0,
        keep_top_k: int = ALL,
        frozen: bool = False,
        constraint: TreeConstraint | None = None,
    ) -> None:
        grow = partial(_drawn, temperature=temperature, keep_top_k=keep_top_k)
        search = BeamSearch(model, frozen=frozen, constraint=constraint, grow=grow).search
        self._compiled = tf.function(
            lambda ids, settings, draws: search(ids, settings, None, draws),
            input_signature=[IDS, SETTINGS, DRAWS],
            autograph=False,
        )
        self._with_prefixes = tf.function(
            search, input_signature=[IDS, SETTINGS, IDS, DRAWS], autograph=False
        )

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
            lines: a number for each sentence, at least 0. What is drawn depends on it, on the seed, on n and
                on what the model says of the sentence: not on the batch.
            seed: at least 0.
            alpha: exponent of the length penalty, which only scores know.
            extra_length: see `BeamSearch`.
            n: outputs of a sentence.
            prefixes: see `BeamSearch`.

        Returns:
            Ids and scores as `BeamSearch`, in the order in which they were drawn. A score is made of the
            probabilities that the model gives, whatever the temperature. An output that came to its bound has
            no EOS.
        """
        source_ids, settings = tf.cast(source_ids, tf.int32), settings_of(n, alpha, extra_length, n)
        if prefixes is not None:
            prefixes = tf.cast(prefixes, tf.int32)
        longest = int(tf.reduce_max(most_tokens(source_ids, extra_length, prefixes)))
        draws = uniform(seed, lines, longest, n)
        if prefixes is None:
            return found(self._compiled(source_ids, settings, draws))
        return found(self._with_prefixes(source_ids, settings, prefixes, draws))


def uniform(seed: int, lines: Sequence[int], positions: int, n: int) -> np.ndarray:
    """Random numbers of [0, 1), float32 [lines, positions, n]; a line's do not depend on the other lines."""
    drawn = [np.random.default_rng((seed, line)).random((positions, n), np.float32) for line in lines]
    return np.stack(drawn)


def _drawn(
    beams: Beams,
    logits: Any,
    sentences: Sentences,
    allowed: Any = None,
    *,
    temperature: float,
    keep_top_k: int,
) -> Beams:
    """One position further, as `advance`; but hypotheses stay where they are, and one that has ended waits.

    Before the first token a sentence has one hypothesis, and n from then on.
    """
    n, width = tf.shape(sentences.draws)[2], tf.shape(logits)[1]
    parents = tf.minimum(tf.range(n), width - 1)
    over = ~(beams.alive_log_probs[:, :1] > NEVER)  # [batch, 1]: nothing is drawn any more
    before = tf.gather(beams.alive_ids, parents, axis=1)  # [batch, n, position]
    waits = tf.reduce_any(before == EOS, axis=2) | over  # [batch, n]

    tokens, log_probs = _draw(
        tf.cast(logits, tf.float32), sentences.draws[:, position(beams)], allowed, temperature, keep_top_k
    )
    tokens = tf.where(waits, PAD, tokens)
    log_probs = beams.alive_log_probs + tf.where(waits, 0.0, log_probs)
    ids = tf.concat([before, tokens[:, :, None]], axis=2)
    ended = tf.reduce_all(waits | (tokens == EOS), axis=1)  # [batch]
    done = ended | (position(beams) + 1 >= sentences.limits)

    penalty = length_penalty(tf.math.count_nonzero(ids, axis=2), sentences.settings.alpha)
    scores = tf.where(log_probs > NEVER, log_probs / penalty, NEVER)
    return Beams(
        last=tokens,
        alive_ids=ids,
        alive_log_probs=tf.where(done[:, None], NEVER, log_probs),
        finished_ids=ids,
        finished_scores=tf.where(over, beams.finished_scores, scores),
        self_bias=tf.gather(beams.self_bias, parents, axis=1),
        self_caches=beams.self_caches,
        said=tf.nest.map_structure(lambda x: tf.gather(x, parents, axis=1), beams.said),
    )


def _draw(logits: Any, draws: Any, allowed: Any, temperature: float, keep_top_k: int) -> tuple[Any, Any]:
    """Tokens and their log-probabilities by the model, both [batch, n].

    Args:
        logits: float32 [batch, width, vocab]; `width` is n, or 1: all are drawn from the same then.
        draws: of [0, 1), float32 [batch, n].
        allowed: see `advance`.
        temperature: see `Sampler`.
        keep_top_k: see `Sampler`.
    """
    vocab = logits.shape[-1]
    log_sum = tf.reduce_logsumexp(logits, axis=2)  # of all tokens: scores stay the model's
    may_come = tf.range(vocab) != PAD
    logits = tf.where(may_come if allowed is None else may_come & allowed, logits, NEVER)
    kept = vocab if keep_top_k == ALL else min(keep_top_k, vocab)
    values, ids = (logits, None) if kept == vocab else top_tokens(logits, kept)

    rows = tf.size(log_sum)  # batch * width
    values, log_sum = tf.reshape(values, [rows, kept]), tf.reshape(log_sum, [rows, 1])
    # In float64, no draw comes to the whole sum, so that a token of no probability is never the one.
    cumulative = tf.cumsum(tf.cast(tf.nn.softmax(values / temperature), tf.float64), axis=1)
    points = tf.reshape(tf.cast(draws, tf.float64), [rows, -1]) * cumulative[:, -1:]
    places = tf.searchsorted(cumulative, points, side="right")  # [rows, n / width]
    places = tf.minimum(places, kept - 1)  # where weights are not numbers
    log_probs = tf.gather(values, places, batch_dims=1) - log_sum
    tokens = places if ids is None else tf.gather(tf.reshape(ids, [rows, kept]), places, batch_dims=1)
    return tf.reshape(tokens, tf.shape(draws)), tf.reshape(log_probs, tf.shape(draws))
