"""Outputs whose beginning is given (T2T's `partial_targets`), and the maximum lengths of outputs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import PAD


class PrefixConstraint:
    """Allows only the next token of a prefix, and all tokens after its end.

    Args:
        size: number of tokens.

    Reference: T2T's `Transformer._fast_decode`, whose prefixes of a batch are of one length, and not scored.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def allowed_tokens(self, seq: Any, prefixes: Any, max_lengths: Any) -> Any:
        """Returns the tokens that may come next.

        Args:
            seq: tokens so far, int32 [batch, beams, length].
            prefixes: int32 [batch, longest], padded with 0; a row of padding forces nothing.
            max_lengths: unused; `max_output_lengths` makes room for prefixes.

        Returns:
            bool [batch, 1, size], for all beams.
        """
        longest = tf.shape(prefixes)[1]
        padded = tf.pad(prefixes, [[0, 0], [0, 1]], constant_values=PAD)
        forced = padded[:, tf.minimum(tf.shape(seq)[2], longest)][:, None, None]  # [batch, 1, 1]
        return (forced == PAD) | (forced == tf.range(self.size))


def max_output_lengths(source_ids: Any, extra_length: Any, prefixes: Any = None) -> Any:
    """Returns the maximum length of each output, EOS counted: `extra_length` more than source or prefix.

    Args:
        source_ids: int32 [batch, source], EOS counted.
        extra_length: scalar or [batch, 1].
        prefixes: int32 [batch, longest], without EOS. `None` stands for no prefixes.

    Returns:
        int32 [batch, 1]; 0 where there is no source.
    """
    lengths = tf.math.count_nonzero(source_ids, axis=1, keepdims=True, dtype=tf.int32)
    longer = lengths
    if prefixes is not None:
        prefix_lengths = tf.math.count_nonzero(prefixes, axis=1, keepdims=True, dtype=tf.int32)
        longer = tf.maximum(lengths, 1 + prefix_lengths)
    return tf.where(lengths > 0, longer + extra_length, 0)
