"""Word alignments in Pharaoh format: "0-0 1-2 ...", numbers of source and target words, counted from 0."""

from __future__ import annotations

import re

_PAIR = re.compile("([0-9]+)-([0-9]+)")


def parse_alignment(line: str) -> list[tuple[int, int]]:
    """Returns the pairs of a line, in its order; an empty line has none.

    Raises:
        ValueError: something in the line is not a pair.
    """
    return [_pair(item) for item in line.split()]


def check_alignment(line: str, source: str, target: str) -> None:
    """Checks the alignment of two texts, whose words stand between spaces.

    Raises:
        ValueError: the line is not an alignment, or a text has no word of such a number.
    """
    sizes = len(source.split()), len(target.split())
    for pair in parse_alignment(line):
        for side, number, size in zip(("source", "target"), pair, sizes, strict=True):
            if number >= size:
                raise ValueError(
                    f"'{pair[0]}-{pair[1]}' has {side} word {number}, and the {side} has {size} words, "
                    "counted from 0: align the texts as they are"
                )


def _pair(item: str) -> tuple[int, int]:
    found = _PAIR.fullmatch(item)
    if not found:
        raise ValueError(f"{item!r} is not a pair of word numbers such as 0-1")
    return int(found[1]), int(found[2])
