"""Workarounds for TensorFlow and Keras, each with the fault that it avoids; none changes a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.utils.keras_hooks import is_autocast

if TYPE_CHECKING:
    from t2t_revival.model import DecoderState

GROUP = 32  # tokens of a group of `top_tokens`
SMALL_VOCABULARY = 1024  # below this, groups are no faster


def cast_weights(weights: list[Any], dtype: str) -> keras.StatelessScope:
    """Returns a scope for a loop in which the weights that mixed precision casts have been cast.

    Fault: Keras casts a weight where it is read, and TensorFlow does not move that cast out of a loop: the
    model would be cast again at each position. Weights without a cast are left out, since a loop reads a
    variable faster than it carries a tensor along.
    """
    scope = keras.StatelessScope()
    for weight in weights:
        if is_autocast(weight) and weight.dtype != dtype:
            scope.add_update((weight, tf.cast(weight.value, dtype)))
    return scope


def prevent_fusion(state: DecoderState, max_lengths: Any) -> DecoderState:
    """Hides from TensorFlow that the second dimension of `encoder_bias` is 1.

    Fault: with oneDNN, TensorFlow 2.21 fuses product, scale and a bias of [batch, 1, ...] into one op; in
    the loop of a decoder of one layer that op never runs, and the search ends without result or error.
    """
    one = 1 + tf.minimum(tf.reduce_max(max_lengths), 0)  # lengths are not negative
    return state._replace(encoder_bias=tf.tile(state.encoder_bias, [1, one, 1, 1]))


def check_result(result: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the result of a compiled search, unless TensorFlow has lost it.

    Fault: see `prevent_fusion`. If another version fuses in another way, an error is better than missing
    lines.

    Raises:
        RuntimeError: the result is lost.
    """
    if result[0].ndim != 3:
        raise RuntimeError("TensorFlow lost the result of the search; try TF_ENABLE_ONEDNN_OPTS=0")
    return result


def shape_invariants(variables: Any) -> Any:
    """Returns shapes of loop variables in which batch, positions and beams are unknown.

    Fault: `tf.while_loop` takes the shapes before the first round for those of all rounds.
    """

    def invariant(x: Any) -> tf.TensorShape:
        if x.shape.rank < 4:
            return tf.TensorShape([None] * x.shape.rank)
        return tf.TensorShape([None, x.shape[1], None, x.shape[3]])  # a cache

    return tf.nest.map_structure(invariant, variables)


def max_or_one(numbers: Any) -> Any:
    """Returns the maximum, but at least 1.

    Fault: of an empty batch, `tf.reduce_max` is the least integer, and `tf.math.top_k` refuses that as k.
    """
    return tf.maximum(tf.reduce_max(numbers), 1)


def top_tokens(logits: Any, k: Any) -> tuple[Any, Any]:
    """Computes `tf.math.top_k`, on a CPU four times as fast.

    The k largest lie in the k groups with the largest maxima. Only these groups are sorted.

    Args:
        logits: float [batch, beams, vocab].
        k: int32 scalar, at most vocab.

    Returns:
        Values and ids, [batch, beams, k], largest first.
    """
    vocab, shape = logits.shape[-1], tf.shape(logits)
    if vocab < SMALL_VOCABULARY:
        return tf.math.top_k(logits, k)
    if vocab % GROUP:
        logits = tf.pad(logits, [[0, 0], [0, 0], [0, -vocab % GROUP]], constant_values=-np.inf)
    groups = -(-vocab // GROUP)
    grouped = tf.reshape(logits, [-1, groups, GROUP])  # [rows, groups, GROUP]
    largest = tf.minimum(k, groups)
    _, chosen = tf.math.top_k(tf.reduce_max(grouped, axis=2), largest)  # [rows, largest]
    members = tf.reshape(tf.gather(grouped, chosen, batch_dims=1), [-1, largest * GROUP])
    values, places = tf.math.top_k(members, k)  # [rows, k]
    ids = tf.gather(chosen, places // GROUP, batch_dims=1) * GROUP + places % GROUP
    result_shape = [shape[0], shape[1], k]
    return tf.reshape(values, result_shape), tf.reshape(ids, result_shape)


def log_sum_exp(logits: Any, top_values: Any, top_ids: Any) -> Any:
    """Computes `tf.reduce_logsumexp` of [batch, beams, vocab] in fewer passes; float32 [batch, beams, 1].

    The best token's probability, found by `top_tokens`, cannot underflow. Its logarithm is its logit less the
    result.
    """
    best = tf.gather(tf.nn.softmax(logits), top_ids[:, :, :1], batch_dims=2)
    return top_values[:, :, :1] - tf.math.log(best)
