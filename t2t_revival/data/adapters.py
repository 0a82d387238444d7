"""Adapters of sources: each changes the rows of another. Processes that make shards unpickle them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path

from t2t_revival.data.base_source import TRAIN, Row, Rows, Source
from t2t_revival.data.cleaning import KEPT, rule_numbers
from t2t_revival.data.tags import tagged
from t2t_revival.data.word_alignment import format_pharaoh, parse_pharaoh


@dataclass(frozen=True)
class Aligned:
    """Rows of train with the word alignments of a file, which has a line for each pair."""

    source: Rows
    file: Path

    def rows(self, split: str, start: int, stop: int) -> Iterator[Row]:
        rows = self.source.rows(split, start, stop)
        if split != TRAIN:
            yield from rows
            return
        with self.file.open(encoding="utf-8", newline="\n") as lines:
            for row, line in zip(rows, islice(lines, start, stop), strict=True):
                yield row._replace(alignment=line.rstrip("\n"))


@dataclass(frozen=True)
class Swapped:
    """Rows with source and target swapped."""

    source: Rows

    def rows(self, split: str, start: int, stop: int) -> Iterator[Row]:
        for source, target, weight, alignment in self.source.rows(split, start, stop):
            if alignment is not None:
                alignment = format_pharaoh(link[::-1] for link in parse_pharaoh(alignment).possible)
            yield Row(target, source, weight, alignment)


@dataclass(frozen=True)
class Tagged:
    """Rows with a tag before each source."""

    source: Rows
    tag: str

    def rows(self, split: str, start: int, stop: int) -> Iterator[Row]:
        words = len(self.tag.split())
        for row in self.source.rows(split, start, stop):
            alignment = row.alignment
            if alignment is not None:
                links = parse_pharaoh(alignment).possible
                alignment = format_pharaoh((source + words, target) for source, target in links)
            yield row._replace(source=tagged([row.source], self.tag)[0], alignment=alignment)


@dataclass(frozen=True)
class Kept:
    """Rows of train without those that a rule drops; `file` is that of `cleaning.apply_rules`."""

    source: Rows
    file: Path

    def rows(self, split: str, start: int, stop: int) -> Iterator[Row]:
        rows = self.source.rows(split, start, stop)
        if split != TRAIN:
            return rows
        return compress(rows, (rule == KEPT for rule in rule_numbers(self.file, start, stop)))


def origin(rows: Rows) -> Source:
    """Returns the source whose rows are changed."""
    while not isinstance(rows, Source):
        rows = rows.source  # type: ignore[attr-defined]
    return rows
