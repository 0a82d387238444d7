"""Pairs of a split, with their numbers and what a source has beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from t2t_revival.data.base_source import Source
from t2t_revival.data.source_checks import read_pairs
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.word_alignment import check_links, parse_pharaoh, token_links
from t2t_revival.errors import T2TError


class NumberedPair(NamedTuple):
    """A pair of a split.

    Attributes:
        number: its number in the split, from 0.
        pair: source and target.
        weight: of its loss; `None` for that of all others.
        alignment: of its words, in Pharaoh's format; `None` where the data has no alignments.
    """

    number: int
    pair: tuple[str, str]
    weight: float | None
    alignment: str | None

    def token_links(
        self, vocabularies: Vocabularies, inputs: list[int], targets: list[int]
    ) -> list[int] | None:
        """Returns the alignment of ids, see `token_links`; `None` without one.

        Raises:
            T2TError: the alignment has something else than links, or a word that the pair does not have.
        """
        if self.alignment is None:
            return None
        try:
            links = parse_pharaoh(self.alignment).possible
            check_links(links, *self.pair)
        except T2TError as error:
            raise T2TError(f"train.align, line {self.number + 1}: {error}") from error
        return token_links(links, vocabularies, self.pair, (inputs, targets))


def read_numbered(
    source: Source, split: str, of_split: tuple[int, int], alignments: Path | None
) -> Iterator[NumberedPair]:
    """Yields the pairs from one number up to another, with weights in train.

    Args:
        source: of the pairs.
        split: which of its splits.
        of_split: the first number, and the one after the last.
        alignments: file with a line for each pair of the split; `None` without alignments.

    Raises:
        T2TError: see `read_pairs`.
    """
    start, stop = of_split
    none = [None] * (stop - start)
    weights = source.weights(start, stop) if split == "train" else None
    pairs = read_pairs(source, split, start, stop)
    with alignments.open(encoding="utf-8", newline="\n") if alignments else nullcontext() as file:
        lines = (line.rstrip("\n") for line in islice(file, start, stop)) if file else none
        columns = pairs, none if weights is None else weights, lines
        yield from map(NumberedPair._make, zip(range(start, stop), *columns, strict=True))
