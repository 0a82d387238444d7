"""Operations on rows of ids in a graph."""

from __future__ import annotations

import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD


def until_eos(ids: tf.RaggedTensor) -> tf.RaggedTensor:
    """Truncates each row before its first EOS and removes PAD: int32 [batch, None] -> int32 [batch, None]."""
    dense = ids.to_tensor(PAD)  # [batch, longest]
    ended = tf.cumsum(tf.cast(dense == EOS, tf.int32), axis=1) > 0
    return tf.ragged.boolean_mask(dense, (dense != PAD) & ~ended)
