"""Checks of what users' own sources yield; each error names file and line of the faulty code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from t2t_revival.data.sources import Source
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import is_file_name
from t2t_revival.utils.source_code import place_of

REQUIRED = ("train", "dev")


def counted(source: Source) -> dict[str, int]:
    """Returns the number of pairs of each split of a source.

    Raises:
        T2TError: a split's name is invalid, a split is empty, or "train" or "dev" is missing.
    """
    where = place_of(source.splits)
    splits = tuple(source.splits())
    for split in splits:
        if not is_file_name(split):
            raise T2TError(f"{where}: split {split!r}: not a valid name: it becomes part of file names")
    required = [split for split in REQUIRED if split not in source.optional]
    if missing := [split for split in required if split not in splits]:
        raise T2TError(f"{where}: splits returns {splits}: {missing[0]!r} is missing")
    return {split: _count(source, split) for split in splits}


def _count(source: Source, split: str) -> int:
    number = source.count(split)
    if number < 1:
        raise T2TError(
            f"{place_of(source.count)}: count returns {number} for the {split} split, not 1 or more"
        )
    return number


def read_pairs(source: Source, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
    """Yields `Source.pairs`, each checked.

    Raises:
        T2TError: one is not a pair of lines, or there are not `stop - start` of them.
    """
    where = place_of(source.pairs)
    number = start
    for number, pair in enumerate(islice(source.pairs(split, start, stop), stop - start + 1), start + 1):
        if number > stop:
            break
        if fault := pair_fault(pair):
            raise T2TError(f"{where}: pair {number} of {split} {fault}")
        yield pair[0], pair[1]
    if number != stop:
        asked = stop - start
        many = f"more than {asked}" if number > stop else f"only {number - start} of {asked}"
        raise T2TError(
            f"{where}: pairs yields {many} pairs of {split} (number {start} up to {stop} of the "
            f"{source.count(split)} that count returns)"
        )


def pair_fault(pair: Any) -> str | None:
    """Describes the fault of an invalid pair (source, target); `None` if it is valid."""
    if not isinstance(pair, tuple | list):
        return f"is {kind_of(pair)}, not a tuple (source, target)"
    if len(pair) != 2:
        return f"has {len(pair)} sides, not 2"
    for side in pair:
        if not isinstance(side, str):
            return f"has a side that is {kind_of(side)}, not a str"
        if "\n" in side:
            return "has a line feed in it: replace it by a space"
        if not side.isascii() and any("\ud800" <= character <= "\udfff" for character in side):
            return "has half a surrogate pair in it, which is no character"
    return None


def kind_of(value: Any) -> str:
    """Returns the name of a value's type, for messages."""
    return "None" if value is None else type(value).__name__
