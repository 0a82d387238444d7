"""Tokens of linearised trees, without an import of NLTK."""

from __future__ import annotations

from collections.abc import Iterable

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
