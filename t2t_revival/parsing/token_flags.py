"""Flags of a vocabulary's tokens for the deterministic attention of a parser's decoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2t_revival.data.vocabulary.sentencepiece import EOS, SPACE_MARK
from t2t_revival.errors import T2TError
from t2t_revival.parsing.symbols import WORD


def token_flags(pieces: Sequence[str]) -> np.ndarray:
    """Returns the `token_flags` of `DeterministicAttention` for a vocabulary with the tokens of trees.

    Returns:
        For each piece whether it begins a word, ends a word, and stands for a word (0 or 1): float32
        [vocab, 3]. EOS begins one: it follows the last word.

    Raises:
        T2TError: the vocabulary has no tokens of trees.
    """
    stands_for = np.array([piece == WORD + SPACE_MARK for piece in pieces])
    if not stands_for.any():
        raise T2TError(
            "hparams: deterministic_attention=True is for parsing: this vocabulary has no tokens of trees"
        )
    begins = np.array([piece.startswith(SPACE_MARK) for piece in pieces])
    begins[EOS] = True
    ends = np.array([piece.endswith(SPACE_MARK) for piece in pieces]) & ~begins
    return np.stack([begins, ends, stands_for], axis=1).astype(np.float32)
