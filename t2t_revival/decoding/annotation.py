"""Details of given outputs, by one pass of the model, teacher-forced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

if TYPE_CHECKING:
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.model import Transformer


class Annotations(NamedTuple):
    """Details of the tokens of outputs.

    Attributes:
        log_probs: of each token, float32 [batch, target].
        alternatives: the most probable tokens at each position, int32 [batch, target, k].
        alternative_log_probs: theirs, float32 [batch, target, k].
        attention: mean weights of the alignment heads, float32 [batch, target, source]; without heads,
            [batch, 0, 0].
    """

    log_probs: Any
    alternatives: Any
    alternative_log_probs: Any
    attention: Any


def teacher_forced(
    model: Transformer, source_ids: Any, target_ids: Any, heads: AlignmentHeads | None = None
) -> tuple[Any, Any]:
    """Returns logits, [batch, target, vocab], and the `attention` of `Annotations`; one pass of the model."""
    if heads is None:
        logits = model({"inputs": source_ids, "targets": target_ids}, training=False)
        return logits, tf.zeros([tf.shape(source_ids)[0], 0, 0])
    encoded = model.encode(source_ids)
    hidden, weights = model.decode(target_ids, source_ids, encoded, return_attention_scores=True)
    of_layer = tf.cast(weights[-1], tf.float32)[:, heads.layer - 1]
    chosen = tf.gather(of_layer, [head - 1 for head in heads.heads], axis=1)
    return model.softmax_embedding(hidden, reverse=True), tf.reduce_mean(chosen, axis=1)
