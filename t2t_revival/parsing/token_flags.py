"""Which tokens of a vocabulary begin, end and stand for words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2t_revival.data.vocabulary import EOS, SPACE_MARK
from t2t_revival.errors import T2TError
from t2t_revival.parsing.symbols import WORD


def word_marks(pieces: Sequence[str]) -> np.ndarray:
    """What `DeterministicAttention` must know of a vocabulary.

    Args:
        pieces: of the vocabulary; the tokens of trees are among them.

    Returns:
        Of each piece, whether it begins a word, ends one, or stands for one, 0 or 1: float32 [vocab, 3]. EOS
        begins one: it is what comes after the last.

    Raises:
        T2TError: the vocabulary has no tokens of trees.
    """
    stands_for = np.array([piece == WORD + SPACE_MARK for piece in pieces])
    if not stands_for.any():
        raise T2TError("hparams: deterministic_attention=True is for parsing: this vocabulary has no trees")
    begins = np.array([piece.startswith(SPACE_MARK) for piece in pieces])
    begins[EOS] = True
    ends = np.array([piece.endswith(SPACE_MARK) for piece in pieces]) & ~begins
    return np.stack([begins, ends, stands_for], axis=1).astype(np.float32)
