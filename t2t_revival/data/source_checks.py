"""Checks of users' own sources and problems; each error names file and line of the faulty code."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from t2t_revival.data.sources import Source
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import is_file_name
from t2t_revival.utils.source_code import place_of

REQUIRED = ("train", "dev")
METHODS = ("splits", "count", "pairs")
ATTRIBUTES = ("kind", "name", "source_lang", "target_lang")


def call(function: Callable, *arguments: Any) -> Any:
    """Calls a function and returns its result; raises T2TError if it does not take these arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise T2TError(
            f"{place_of(function)}: {function.__name__} is called with {len(arguments)} arguments: {error}"
        ) from error
    return function(*arguments)


def made_source(make: Callable, data_source: str, *arguments: Any) -> Source:
    """Calls a problem's `make_source` and returns the source; one without a name gets that of `data_source`.

    Raises:
        T2TError: it returns no `Source`, or one with an attribute that is not a str.
    """
    source = call(make, data_source, *arguments)
    if not isinstance(source, Source):
        kind = kind_of(source)
        raise T2TError(
            f"{place_of(make)}: make_source returns {kind}, not a Source (t2t_revival.data.sources)"
        )
    for name in (*METHODS, *ATTRIBUTES):
        value, expected = getattr(source, name), "a method" if name in METHODS else "a str"
        if not (callable(value) if name in METHODS else isinstance(value, str)):
            raise T2TError(f"{place_of(type(source))}: {name} is {kind_of(value)}, not {expected}")
    if not source.name:
        source.name = data_source
    return source


def checked_size(problem: Any, size: Any, origin: str) -> int:
    """Returns the vocabulary size that a problem's property or method `origin` returned.

    Raises:
        T2TError: the size is not a positive int, or is a method that should be a property.
    """
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    where = place_of(size if callable(size) else getattr(type(problem), origin), type(problem))
    if callable(size):
        raise T2TError(f"{where}: {origin} is a method: write @property above it, as in T2T")
    raise T2TError(f"{where}: {origin} is {size!r}, not a number of pieces such as 32000")


def checked_symbols(problem: Any, source: Source) -> Sequence[str]:
    """Returns a problem's `user_symbols`; raises T2TError if they are not a list or tuple of str."""
    symbols = problem.user_symbols(source)
    if isinstance(symbols, list | tuple) and all(isinstance(symbol, str) and symbol for symbol in symbols):
        return symbols
    where = place_of(problem.user_symbols)
    raise T2TError(f"{where}: user_symbols returns {symbols!r}, not a list of texts")


def counted(source: Source) -> dict[str, int]:
    """Returns the number of pairs of each split of a source.

    Raises:
        T2TError: a split's name or number is invalid, or "train" or "dev" is missing.
    """
    splits = call(source.splits)
    where = place_of(source.splits)
    if not is_iterable(splits):
        raise T2TError(f"{where}: splits returns {kind_of(splits)}, not a tuple of names")
    splits = tuple(splits)
    for split in splits:
        if not isinstance(split, str) or not is_file_name(split):
            raise T2TError(f"{where}: split {split!r}: not a valid name: it becomes part of file names")
    required = [split for split in REQUIRED if split not in source.optional]
    if missing := [split for split in required if split not in splits]:
        raise T2TError(f"{where}: splits returns {splits}: {missing[0]!r} is missing")
    return {split: _count(source, split) for split in splits}


def _count(source: Source, split: str) -> int:
    count = call(source.count, split)
    try:
        number = operator.index(count)
    except TypeError:
        raise T2TError(f"{place_of(source.count)}: count returns {kind_of(count)}, not an int") from None
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
    pairs = call(source.pairs, split, start, stop)
    where = place_of(source.pairs)
    if not is_iterable(pairs):
        raise T2TError(f"{where}: pairs returns {kind_of(pairs)}, not an iterator of pairs")
    number = start
    for number, pair in enumerate(islice(pairs, stop - start + 1), start + 1):
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


def is_iterable(value: Any) -> bool:
    """Returns whether a value is iterable and not a str."""
    return isinstance(value, Iterable) and not isinstance(value, str)


def kind_of(value: Any) -> str:
    """Returns the name of a value's type, for messages."""
    return "None" if value is None else type(value).__name__
