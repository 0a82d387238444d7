"""The rows of a corpus: those of its source, with all that data generation changes in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path

from t2t_revival.data.base_source import TRAIN, Row, Source
from t2t_revival.data.cleaning import KEPT, rule_numbers
from t2t_revival.data.tags import tagged
from t2t_revival.data.word_alignment import format_pharaoh, parse_pharaoh


@dataclass(frozen=True)
class CorpusRows:
    """Rows of a source, changed in the order of the attributes. Processes that make shards unpickle them.

    Attributes:
        source: of the rows.
        alignments: a file with the word alignment of each pair of train; `None` leaves the rows' own.
        swapped: whether source and target are swapped.
        tag: stands before each source; "" is none.
        rules: the file of `cleaning.apply_rules`, by which rows of train are dropped; `None` keeps all.
    """

    source: Source
    alignments: Path | None = None
    swapped: bool = False
    tag: str = ""
    rules: Path | None = None

    def rows(self, split: str, start: int, stop: int) -> Iterator[Row]:
        """Yields the rows of the source's pairs number `start` up to `stop` of a split."""
        rows = self.source.rows(split, start, stop)
        if split == TRAIN and self.alignments:
            rows = _aligned(rows, self.alignments, start, stop)
        if self.swapped or self.tag:
            rows = map(self._changed, rows)
        if split == TRAIN and self.rules:
            rows = compress(rows, (rule == KEPT for rule in rule_numbers(self.rules, start, stop)))
        return rows

    def _changed(self, row: Row) -> Row:
        source, target, weight, alignment = row
        if self.swapped:
            source, target = target, source
        if alignment is not None:
            links = parse_pharaoh(alignment).possible
            words = len(self.tag.split())
            alignment = format_pharaoh(
                (words + first, second)
                for first, second in (link[::-1] if self.swapped else link for link in links)
            )
        return Row(tagged([source], self.tag)[0], target, weight, alignment)


def _aligned(rows: Iterator[Row], file: Path, start: int, stop: int) -> Iterator[Row]:
    with file.open(encoding="utf-8", newline="\n") as lines:
        for row, line in zip(rows, islice(lines, start, stop), strict=True):
            yield row._replace(alignment=line.rstrip("\n"))
