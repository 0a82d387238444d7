"""Tokens of linearised trees, without an import of NLTK, and their flags for deterministic attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from t2t_revival.data.vocabulary.sentencepiece import EOS, SPACE_MARK
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    import numpy as np

WORD = "XX"
OPEN, CLOSE = "(", ")"
MAX_DEPTH = 150  # nested brackets; treebanks have about 40, and functions on trees are recursive
MOST_OPEN = MAX_DEPTH - 2  # nested constituents, inside a possible TOP and around a word


def symbols(labels: Iterable[str]) -> list[str]:
    """Returns the tokens of trees with these labels, each followed by a space.

    The space makes the tokens prefix-free, so that a vocabulary finds them in any sequence.
    """
    brackets = [bracket + label for label in sorted(set(labels)) for bracket in (OPEN, CLOSE)]
    return [f"{token} " for token in [WORD, *brackets]]


def token_flags(pieces: Sequence[str]) -> np.ndarray:
    """Returns the `token_flags` of `DeterministicAttention` for a vocabulary with the tokens of trees.

    Returns:
        For each piece whether it begins a word, ends a word, and stands for a word (0 or 1): float32
        [vocab, 3]. EOS begins one: it follows the last word.

    Raises:
        T2TError: the vocabulary has no tokens of trees.
    """
    import numpy as np

    stands_for = np.array([piece == WORD + SPACE_MARK for piece in pieces])
    if not stands_for.any():
        raise T2TError(
            "hparams: deterministic_attention=True is for parsing: this vocabulary has no tokens of trees"
        )
    begins = np.array([piece.startswith(SPACE_MARK) for piece in pieces])
    begins[EOS] = True
    ends = np.array([piece.endswith(SPACE_MARK) for piece in pieces]) & ~begins
    return np.stack([begins, ends, stands_for], axis=1).astype(np.float32)
