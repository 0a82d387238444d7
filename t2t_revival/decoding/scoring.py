"""Log-probabilities of given outputs (T2T's `--score_file`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import PAD
from t2t_revival.decoding.outputs import Score

if TYPE_CHECKING:
    from t2t_revival.model import Transformer

MAX_EXPONENT = 700.0  # exp of more overflows


class Scorer:
    """Scores outputs by one pass of the model, teacher-forced.

    Args:
        model: the model; its weights may change between calls.
        weights: returns a scope in which the model has the weights to score with. `None` leaves its own.

    Example:
        log_probs = Scorer(model)(source_ids, target_ids)
    """

    def __init__(
        self, model: Transformer, weights: Callable[[], AbstractContextManager[Any]] | None = None
    ) -> None:
        self._model, self._weights = model, weights or nullcontext
        ids = tf.TensorSpec([None, None], tf.int32)
        self._compiled = tf.function(self._log_probs, input_signature=[ids, ids], autograph=False)

    def __call__(self, source_ids: Any, target_ids: Any) -> tf.Tensor:
        """Returns log-probabilities without a length penalty, float32 [batch].

        Args:
            source_ids: int32 [batch, source]; each ends with EOS and is padded with 0.
            target_ids: int32 [batch, target], likewise.
        """
        return self._compiled(tf.cast(source_ids, tf.int32), tf.cast(target_ids, tf.int32))

    def _log_probs(self, source_ids: Any, target_ids: Any) -> Any:
        with self._weights():
            logits = self._model({"inputs": source_ids, "targets": target_ids}, training=False)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(target_ids, tf.cast(logits, tf.float32))
        return -tf.reduce_sum(tf.where(target_ids == PAD, 0.0, losses), axis=1)  # of [batch, target]


def per_token(scores: Sequence[Score]) -> tuple[float, float]:
    """Returns mean log-probability per token, and perplexity; 0 and 1 without scores."""
    tokens = sum(score.tokens for score in scores)
    mean = sum(score.log_prob for score in scores) / max(tokens, 1)
    return mean, math.exp(min(-mean, MAX_EXPONENT))


def summarize(scores: Sequence[Score]) -> str:
    """Describes the mean of scores for people."""
    mean, perplexity = per_token(scores)
    tokens = sum(score.tokens for score in scores)
    return (
        f"log-probability {mean:.4f} per token, perplexity {perplexity:.2f} ({tokens:,} tokens of "
        f"{len(scores):,} targets, EOS counted)"
    )
