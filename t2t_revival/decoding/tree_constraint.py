"""Section 6.3, constrained: a beam that can produce nothing but trees over the words of its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary import EOS, SPACE_MARK, UNK
from t2t_revival.errors import T2TError
from t2t_revival.parsing.symbols import CLOSE, MOST_OPEN, OPEN, WORD

NO_LABEL = -1


class TreeConstraint:
    """Which tokens may follow, given those before.

    A closing token must be that of the innermost open constituent, which must have a word; there are as
    many XX as the sentence has words; EOS follows the end of the tree; and what is open can be closed before
    the length's limit.

    Args:
        pieces: of the vocabulary; the tokens of trees stand behind UNK.

    Attributes:
        size: ids below it are all that a tree needs.

    Raises:
        T2TError: the vocabulary has no tokens of trees.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        tokens = [token.removesuffix(SPACE_MARK) for token in takewhile(_is_symbol, pieces[UNK + 1 :])]
        if WORD not in tokens:
            raise T2TError("decode_hparams: constrained=True is for parsing: this vocabulary has no trees")
        self.size = UNK + 1 + len(tokens)
        known = [""] * (UNK + 1) + tokens
        opening = {
            token.removeprefix(OPEN): number for number, token in enumerate(known) if token[:1] == OPEN
        }
        self._is_word = np.array([token == WORD for token in known])
        self._is_end = np.arange(self.size) == EOS
        self._closes = np.array(  # the opening token that a closing one belongs to
            [opening[token.removeprefix(CLOSE)] if token[:1] == CLOSE else NO_LABEL for token in known],
            np.int32,
        )
        self._opens = np.isin(np.arange(self.size), list(opening.values()))
        self._step = self._opens.astype(np.int32) - (
            self._closes != NO_LABEL
        )  # what a token adds to the depth
        self._spaces = np.array([piece.count(SPACE_MARK) for piece in pieces], np.int32)

    def words(self, source_ids: Any) -> Any:
        """How many words sentences have, int32 [batch]; their ids, [batch, source], have spaces between."""
        return 1 + tf.reduce_sum(tf.gather(self._spaces, source_ids), axis=1)

    def allowed(self, ids: Any, words: Any, limits: Any) -> Any:
        """Whether each token may be next.

        Args:
            ids: tokens so far, int32 [batch, beams, position].
            words: of the sentences, int32 [batch].
            limits: most tokens of an output, EOS counted, int32 [batch].

        Returns:
            bool [batch, beams, size].
        """
        position = tf.shape(ids)[2]
        ids = tf.pad(ids, [[0, 0], [0, 0], [1, 0]])  # [batch, beams, 1 + position], never empty
        depths = tf.cumsum(tf.gather(self._step, ids), axis=2)
        depth = depths[:, :, -1]  # [batch, beams]
        said = tf.math.count_nonzero(tf.gather(self._is_word, ids), axis=2, dtype=tf.int32)
        left = words[:, None] - said
        room = limits[:, None] - position - 1  # tokens behind this one

        opens = tf.gather(self._opens, ids)
        innermost = opens & (depths == depth[:, :, None])  # the last of these is still open
        places = tf.where(innermost, tf.range(position + 1), 0)
        label = tf.gather(ids, tf.reduce_max(places, axis=2), batch_dims=2)  # [batch, beams]

        inside = depth > 0
        may_open = (left > 0) & (inside | (position == 0)) & (left + depth + 2 <= room) & (depth < MOST_OPEN)
        may_close = inside & ~opens[:, :, -1] & ((depth > 1) | (left == 0))
        return (
            (may_open[:, :, None] & self._opens)
            | (((left > 0) & inside)[:, :, None] & self._is_word)
            | (may_close[:, :, None] & (label[:, :, None] == self._closes))
            | ((~inside & (position > 0))[:, :, None] & self._is_end)
        )


def _is_symbol(piece: str) -> bool:
    token = piece.removesuffix(SPACE_MARK)
    return token != piece and (token == WORD or (token[:1] in (OPEN, CLOSE) and len(token) > 1))
