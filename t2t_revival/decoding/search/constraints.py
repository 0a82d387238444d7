"""Constraints of outputs: trees over the words of the sentence (section 6.3), and given beginnings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD, SPACE_MARK, UNK
from t2t_revival.errors import T2TError
from t2t_revival.parsing.symbols import CLOSE, MOST_OPEN, OPEN, WORD

NO_LABEL = -1


class TreeConstraint:
    """Allows only tokens that lead to a tree over the words of the sentence.

    A closing token must have the label of the innermost open constituent, which must have a word. There are
    as many XX as the sentence has words. EOS comes after the tree and nowhere else. A constituent is opened
    only if all can still be closed before the maximum length.

    Args:
        pieces: pieces of the vocabulary; the tokens of trees come right after UNK.

    Attributes:
        size: number of tokens that a tree may have, EOS included: ids below it.

    Raises:
        T2TError: the vocabulary has no tokens of trees.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        tokens = [token.removesuffix(SPACE_MARK) for token in takewhile(_is_symbol, pieces[UNK + 1 :])]
        if WORD not in tokens:
            raise T2TError(
                "decode_hparams: constrained=True is for parsing, and this vocabulary has no tokens for trees"
            )
        self.size = UNK + 1 + len(tokens)
        tokens = [""] * (UNK + 1) + tokens
        opening = {
            token.removeprefix(OPEN): number for number, token in enumerate(tokens) if token[:1] == OPEN
        }
        closed = [opening[token.removeprefix(CLOSE)] if token[:1] == CLOSE else NO_LABEL for token in tokens]
        # By token: whether it is XX, EOS or an opening one, the opening token of a closing one, the change
        # of depth; and for all pieces, the number of spaces.
        self._is_word = np.array([token == WORD for token in tokens])
        self._is_eos = np.arange(self.size) == EOS
        self._opens = np.isin(np.arange(self.size), list(opening.values()))
        self._closes = np.array(closed, np.int32)
        self._depth_change = self._opens.astype(np.int32) - (self._closes != NO_LABEL)
        self._spaces = np.array([piece.count(SPACE_MARK) for piece in pieces], np.int32)

    def count_words(self, source_ids: Any) -> Any:
        """Counts the words of sentences by the spaces in their ids, [batch, source]; int32 [batch, 1]."""
        return 1 + tf.reduce_sum(tf.gather(self._spaces, source_ids), axis=1, keepdims=True)

    def allowed_tokens(self, seq: Any, words: Any, max_lengths: Any) -> Any:
        """Returns the tokens that may come next.

        Args:
            seq: tokens so far, int32 [batch, beams, length].
            words: number of words of each sentence, int32 [batch, 1].
            max_lengths: maximum length of each output, EOS counted, int32 [batch, 1].

        Returns:
            bool [batch, beams, size].
        """
        length = tf.shape(seq)[2]
        seq = tf.pad(seq, [[0, 0], [0, 0], [1, 0]])  # [batch, beams, 1 + length], never empty
        depths = tf.cumsum(tf.gather(self._depth_change, seq), axis=2)
        depth = depths[:, :, -1]  # [batch, beams]
        emitted = tf.math.count_nonzero(tf.gather(self._is_word, seq), axis=2, dtype=tf.int32)
        missing = words - emitted
        room = max_lengths - length - 1  # tokens after this one

        opens = tf.gather(self._opens, seq)
        candidates = opens & (depths == depth[:, :, None])  # the last of these is the innermost open one
        places = tf.where(candidates, tf.range(length + 1), 0)
        innermost = tf.gather(seq, tf.reduce_max(places, axis=2), batch_dims=2)  # [batch, beams]

        inside = depth > 0
        fits = (missing + depth + 2 <= room) & (depth < MOST_OPEN)
        may_open = (missing > 0) & (inside | (length == 0)) & fits
        may_close = inside & ~opens[:, :, -1] & ((depth > 1) | (missing == 0))
        return (
            (may_open[:, :, None] & self._opens)
            | (((missing > 0) & inside)[:, :, None] & self._is_word)
            | (may_close[:, :, None] & (innermost[:, :, None] == self._closes))
            | ((~inside & (length > 0))[:, :, None] & self._is_eos)
        )


def _is_symbol(piece: str) -> bool:
    token = piece.removesuffix(SPACE_MARK)
    return token != piece and (token == WORD or (token[:1] in (OPEN, CLOSE) and len(token) > 1))


class PrefixConstraint:
    """Allows only the next token of a prefix, and all tokens after its end.

    Args:
        size: number of tokens.

    Reference: T2T's `Transformer._fast_decode`, whose prefixes of a batch are of one length, and not scored.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def allowed_tokens(self, seq: Any, prefixes: Any, max_lengths: Any) -> Any:
        """Returns the tokens that may come next, bool [batch, 1, size], as `TreeConstraint.allowed_tokens`.

        Prefixes are int32 [batch, longest], padded with 0; a row of padding forces nothing. `max_lengths` is
        not used: `max_output_lengths` makes room for prefixes.
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
