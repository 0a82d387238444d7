"""Outputs whose beginning is given (T2T's `partial_targets`)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from t2t_revival.data.vocabulary import PAD


class PrefixConstraint:
    """Which tokens may follow: where a prefix goes on, its next one alone; behind it, any.

    Args:
        size: ids below it are tokens.

    Reference: T2T's `Transformer._fast_decode`, whose prefixes of a batch are of one length, and not scored.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def allowed(self, ids: Any, prefixes: Any, limits: Any) -> Any:
        """Whether each token may be next.

        Args:
            ids: tokens so far, int32 [batch, beams, position].
            prefixes: int32 [batch, longest], padded with 0; only padding where there is none.
            limits: not looked at; see `most_tokens`.

        Returns:
            bool [batch, 1, size], for all beams.
        """
        longest = tf.shape(prefixes)[1]
        ended = tf.pad(prefixes, [[0, 0], [0, 1]], constant_values=PAD)
        following = ended[:, tf.minimum(tf.shape(ids)[2], longest)][:, None, None]  # [batch, 1, 1]
        return (following == PAD) | (following == tf.range(self.size))


def most_tokens(source_ids: Any, extra_length: Any, prefixes: Any = None) -> Any:
    """How many tokens an output may have, EOS counted: `extra_length` more than its source or its prefix.

    Args:
        source_ids: int32 [batch, source], EOS counted.
        extra_length: scalar or [batch].
        prefixes: int32 [batch, longest], without EOS; None: there are none.

    Returns:
        int32 [batch]; 0 where there is no source.
    """
    lengths = tf.math.count_nonzero(source_ids, axis=1, dtype=tf.int32)
    longer = lengths
    if prefixes is not None:
        longer = tf.maximum(lengths, 1 + tf.math.count_nonzero(prefixes, axis=1, dtype=tf.int32))
    return tf.where(lengths > 0, longer + extra_length, 0)
