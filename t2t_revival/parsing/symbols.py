"""The tokens of linearised trees; what needs only these need not import NLTK."""

from __future__ import annotations

from collections.abc import Iterable

WORD = "XX"
OPEN, CLOSE = "(", ")"
MAX_DEPTH = 150  # brackets in one another; treebanks have about 40, and what walks a tree calls itself
MOST_OPEN = MAX_DEPTH - 2  # constituents: words have brackets too, and there may be a TOP around them


def symbols(labels: Iterable[str]) -> list[str]:
    """The tokens that trees of these labels need, each with the space behind it.

    With its space, none is the beginning of another: a vocabulary finds them in any sequence.
    """
    brackets = [bracket + label for label in sorted(set(labels)) for bracket in (OPEN, CLOSE)]
    return [f"{token} " for token in [WORD, *brackets]]
