"""Texts that Python code passes: lists, arrays or columns of tables, and pairs; blank ones; and sizes."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from t2t_revival.errors import LineError, T2TError

MAX_DIMENSIONS = {"pairs": 2}  # of an array, by what it holds; 1 for all others
UNITS = ("bytes", "kB", "MB", "GB")
# Controls, spaces, separators, Unicode's default ignorable characters, annotation marks, and blank Braille.
INVISIBLE = (
    (0x0000, 0x0020),
    (0x007F, 0x00A0),
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
BLANK = re.compile("[{}]*".format("".join(rf"\U{first:08x}-\U{last:08x}" for first, last in INVISIBLE)))


def items_of(given: Any, what: str) -> list[Any]:
    """Returns the items of a list, generator, array or column.

    Args:
        given: from Python code.
        what: the values are, as in "lines", for errors.

    Raises:
        T2TError: the values are one text, have no order, or are no list of any kind.
    """
    one_text = isinstance(given, str | bytes | bytearray)
    ordered = isinstance(given, Iterable) and not isinstance(given, Mapping | set | frozenset)
    if one_text or not ordered or not 1 <= getattr(given, "ndim", 1) <= MAX_DIMENSIONS.get(what, 1):
        raise T2TError(f"{what}: {shown(given)} is of type {type(given).__name__}: give a list")
    return list(given)


def texts_of(given: Any, what: str = "lines", first: int = 1, optional: bool = False) -> list[str]:
    """Returns a list of texts; see `items_of`.

    Args:
        given: from Python code.
        what: the values are, for errors.
        first: number of the first one, for errors.
        optional: whether `None` stands for "".

    Raises:
        T2TError: the values are no list.
        LineError: one of them is no string.
    """
    items = items_of(given, what)
    if optional:
        items = ["" if item is None else item for item in items]
    for number, item in enumerate(items, first):
        if not isinstance(item, str):
            place = "" if what == "lines" else f"{what}: "
            raise LineError(number, f'{place}{shown(item)} is not a string; "" is an empty line')
    return items


def pairs_of(given: Any, first: int = 1) -> list[tuple[str, str]]:
    """Returns pairs of texts; see `items_of`.

    Args:
        given: from Python code.
        first: number of the first pair, for errors.

    Raises:
        T2TError: the values are no list.
        LineError: one of them is not a pair of strings.
    """
    pairs = []
    for number, item in enumerate(items_of(given, "pairs"), first):
        try:
            source, target = texts_of(item, "pair")
        except (T2TError, ValueError) as error:
            raise LineError(
                number, f"{shown(item)} is not a pair of strings: give (source, output)"
            ) from error
        pairs.append((source, target))
    return pairs


def shown(value: Any) -> str:
    """Formats a value, shortened, on one line."""
    return " ".join(reprlib.repr(value).split())


def readable_size(size: float) -> str:
    """Formats a number of bytes, in powers of 1000: 23,456,789 -> "23 MB", 1,234,567 -> "1.2 MB"."""
    for unit in UNITS:
        if size < 999.5:
            return f"{size:.1f} {unit}" if unit != UNITS[0] and size < 9.95 else f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def is_blank(text: str) -> bool:
    """Checks whether a text has nothing visible; such a line has an empty output."""
    return BLANK.fullmatch(text) is not None
