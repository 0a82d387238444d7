"""Packing: several pairs share a row, so that all batches have one shape (T2T's `pack_dataset`).

A pair takes the next free positions of its row on both sides. Segments number the pairs of a row from 1, and
are 0 at padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

SEGMENTS = "inputs_segmentation", "targets_segmentation"  # of a batch's arrays; T2T's names
WINDOW = 8192  # examples that are packed together


class Places(NamedTuple):
    """Places of n examples in a batch, int64 [n] each.

    Attributes:
        rows: their rows.
        numbers: their segments, from 1.
        sources: first position of their sources in the row.
        targets: first position of their targets.
    """

    rows: np.ndarray
    numbers: np.ndarray
    sources: np.ndarray
    targets: np.ndarray


def pack(source: np.ndarray, target: np.ndarray, length: int) -> list[np.ndarray]:
    """Packs examples first-fit into rows of `length` positions on both sides, long ones first.

    Args:
        source: lengths of the sources, int [n], `length` at most.
        target: lengths of the targets.
        length: positions of a row on each side.

    Returns:
        The examples of each row.
    """
    order = np.argsort(-np.maximum(source, target), kind="stable")
    free = np.full((2, len(order)), length)  # positions of each row
    rows: list[list[int]] = []
    first_open = 0  # rows before it have no place for the shortest example
    shortest = int(np.minimum(source, target).min(initial=length))
    for example in order.tolist():
        needed = source[example], target[example]
        open_rows = free[:, first_open : len(rows) + 1]
        row = first_open + int(np.argmax((open_rows[0] >= needed[0]) & (open_rows[1] >= needed[1])))
        if row == len(rows):
            rows.append([])
        rows[row].append(example)
        free[0, row] -= needed[0]
        free[1, row] -= needed[1]
        while first_open < len(rows) and free[:, first_open].min() < shortest:
            first_open += 1
    return [np.array(row) for row in rows]


def packed_batches(
    members: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    size: int,
    length: int,
    permutation: Callable[[int], Iterable[int]] = range,
) -> Iterator[list[np.ndarray]]:
    """Packs examples into batches, a window of them at a time; the last batch may have fewer rows.

    Args:
        members: the examples, in their order.
        source: lengths of all sources.
        target: lengths of all targets.
        size: rows of a batch.
        length: positions of a row on each side.
        permutation: returns the order of so many rows.

    Yields:
        The examples of each row.
    """
    rest: list[np.ndarray] = []
    for start in range(0, len(members), WINDOW):
        window = members[start : start + WINDOW]
        rows = rest + [window[row] for row in pack(source[window], target[window], length)]
        rows = [rows[number] for number in permutation(len(rows))]
        end = len(rows) // size * size if start + WINDOW < len(members) else len(rows)
        rest = rows[end:]
        yield from (rows[first : first + size] for first in range(0, end, size))


def places_of(rows: list[np.ndarray], source: np.ndarray, target: np.ndarray) -> Places:
    """Returns the places of the examples of a batch's rows, one row after another.

    Args:
        rows: see `pack`.
        source: lengths of all sources.
        target: lengths of all targets.
    """
    sizes = np.array([len(row) for row in rows])
    members, firsts = np.concatenate(rows), np.repeat(np.cumsum(sizes) - sizes, sizes)
    begins = (np.cumsum(lengths) - lengths for lengths in (source[members], target[members]))
    sources, targets = (begin - begin[firsts] for begin in begins)
    numbers = np.arange(len(members)) - firsts + 1
    return Places(np.repeat(np.arange(len(rows)), sizes), numbers, sources, targets)
