"""Loss, perplexity and accuracy per subword (table 3's "PPL (dev)")."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow as tf


class TeacherForced:
    """Teacher-forced scores of a model, which predicts each token from the reference before it.

    Args:
        model: returns logits [batch, target, vocab]; its weights may change between calls.
        num_parallel_batches: number of batches that are computed side by side.
    """

    def __init__(self, model: Any, num_parallel_batches: int = 1) -> None:
        self._num_parallel_batches = num_parallel_batches
        self._sums = tf.function(lambda inputs, labels: _sums(model, inputs, labels), reduce_retracing=True)

    def __call__(self, batches: tf.data.Dataset) -> dict[str, float]:
        """Computes scores of the batches' non-pad target tokens, without label smoothing.

        Args:
            batches: elements ({"inputs", "targets"}, labels [batch, target], ...), padded with 0.

        Returns:
            "loss", the mean negative log-probability in nats; "perplexity", its exponential; "accuracy",
            the share of tokens that the model found most likely.
        """
        log_loss = correct = tokens = 0.0
        for sums in self._all_sums(batches):
            log_loss, correct, tokens = (
                total + float(part) for total, part in zip((log_loss, correct, tokens), sums, strict=True)
            )
        loss = log_loss / max(tokens, 1.0)
        return {
            "loss": loss,
            "perplexity": math.exp(min(loss, 700.0)),
            "accuracy": correct / max(tokens, 1.0),
        }

    def _all_sums(self, batches: tf.data.Dataset) -> Iterator[tuple[tf.Tensor, ...]]:
        if self._num_parallel_batches == 1:
            yield from (self._sums(inputs, labels) for inputs, labels, *_ in batches)
            return
        with ThreadPoolExecutor(self._num_parallel_batches) as pool:
            yield from pool.map(lambda batch: self._sums(*batch[:2]), batches)


def _sums(model: Any, inputs: dict[str, tf.Tensor], labels: tf.Tensor) -> tuple[tf.Tensor, ...]:
    logits = tf.cast(model(inputs, training=False), tf.float32)  # [batch, target, vocab]
    mask = tf.cast(labels > 0, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)  # [batch, target]
    correct = tf.cast(tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels), tf.float32)
    return tf.reduce_sum(losses * mask), tf.reduce_sum(correct * mask), tf.reduce_sum(mask)
