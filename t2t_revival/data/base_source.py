"""`Source`, the class of all sources of sentence pairs, users' own included, and its `Row`s."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from t2t_revival.errors import T2TError
from t2t_revival.utils.files import is_file_name
from t2t_revival.utils.source_code import place_of

SPLITS = TRAIN, DEV, TEST = ("train", "dev", "test")
REQUIRED = (TRAIN, DEV)


class Row(NamedTuple):
    """A sentence pair.

    Attributes:
        source: the first side, without "\\n".
        target: the second side.
        weight: multiplies the pair's loss; `None` where all pairs count alike.
        alignment: of its words, in Pharaoh's format; `None` where it is not known.
    """

    source: str
    target: str
    weight: float | None = None
    alignment: str | None = None


def choices_for(source_lang: str, target_lang: str) -> str:
    """Returns what `--data_source` takes, with the files of a folder for two languages."""
    return (
        f"--data_source takes a folder with {folder_files(source_lang, target_lang)}, "
        "sample (built in), tfds:NAME/CONFIG (prepared where TFDS_DATA_DIR points, or downloaded), or "
        "hf:OWNER/NAME/CONFIG (in the cache where HF_HOME points, or downloaded); several are a list "
        "NAME=SOURCE:WEIGHT,NAME=SOURCE:WEIGHT"
    )


def folder_files(source_lang: str, target_lang: str) -> str:
    """Returns the names of the files that a folder of two languages must have."""
    return " ".join(f"{split}.{language}" for split in SPLITS[:2] for language in (source_lang, target_lang))


class Source(abc.ABC):
    """Sentence pairs in splits named "train", "dev" and optionally "test".

    Subclasses implement the three abstract methods; the attributes have defaults.

    Attributes:
        kind: "folder", "tfds", "hf" or "sample", by which a problem chooses its vocabulary size.
        name: equal for equal data, and itself a valid --data_source. "" uses the --data_source that the
            source was made for.
        source_lang: the language of the first sides, for messages.
        target_lang: the language of the second sides.
        optional: the splits that may be missing; sources of several corpora may lack "dev" too.
    """

    kind: str = "own"
    name: str = ""
    source_lang: str = "inputs"
    target_lang: str = "targets"
    optional: tuple[str, ...] = ("test",)

    @abc.abstractmethod
    def splits(self) -> tuple[str, ...]:
        """Returns the existing splits.

        Raises:
            T2TError: the data cannot be found.
        """

    @abc.abstractmethod
    def count(self, split: str) -> int:
        """Returns the number of pairs of a split, empty ones included.

        Raises:
            T2TError: the data cannot be read.
        """

    @abc.abstractmethod
    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        r"""Yields the pairs (source, target) number `start` up to `stop` of a split, without "\n".

        Raises:
            T2TError: the data cannot be read.
        """

    def rows(self, split: str, start: int, stop: int) -> Iterator[Row]:
        """Yields `pairs` as rows, each checked.

        Raises:
            T2TError: one is not a pair of lines, or there are not `stop - start` of them.
        """
        where = place_of(self.pairs)
        number = start
        for number, pair in enumerate(islice(self.pairs(split, start, stop), stop - start + 1), start + 1):
            if number > stop:
                break
            if fault := pair_fault(pair):
                raise T2TError(f"{where}: pair {number} of {split} {fault}")
            yield Row(pair[0], pair[1])
        if number != stop:
            asked = stop - start
            many = f"more than {asked}" if number > stop else f"only {number - start} of {asked}"
            raise T2TError(
                f"{where}: pairs yields {many} pairs of {split} (number {start} up to {stop} of the "
                f"{self.count(split)} that count returns)"
            )

    def has_weights(self) -> bool:
        """Returns whether the rows of train have weights."""
        return False

    def counts(self) -> dict[str, int]:
        """Returns the number of pairs of each split.

        Raises:
            T2TError: a split's name is invalid, a split is empty, or "train" or "dev" is missing.
        """
        where = place_of(self.splits)
        splits = tuple(self.splits())
        for split in splits:
            if not is_file_name(split):
                raise T2TError(f"{where}: split {split!r}: not a valid name: it becomes part of file names")
        required = [split for split in REQUIRED if split not in self.optional]
        if missing := [split for split in required if split not in splits]:
            raise T2TError(f"{where}: splits returns {splits}: {missing[0]!r} is missing")
        counts = {split: self.count(split) for split in splits}
        for split, number in counts.items():
            if number < 1:
                raise T2TError(
                    f"{place_of(self.count)}: count returns {number} for the {split} split, not 1 or more"
                )
        return counts

    def alignments(self, split: str, start: int, stop: int) -> Iterator[str] | None:
        """Returns the word alignments of the pairs number `start` up to `stop` of a split: "0-0 1-2 ...".

        Such a line has the numbers of source and target words that belong together, counted from 0; words
        stand between spaces. `None`, for all pairs of a split, if they are not known.
        """
        return None

    def files(self) -> list[Path]:
        """Returns the files that the pairs are read from, by which generated data notices later changes.

        Without any, as by default, a change of the pairs is not noticed: give the source another name then.
        """
        return []

    def version(self) -> str:
        """Returns the version of the set of a library; "" if it has none, or it is not known here."""
        return ""

    def download_note(self) -> str:
        """Returns a line on what the first read will download, and where to; "" if nothing."""
        return ""

    def check(self) -> None:  # noqa: B027 (optional)
        """Checks that the data exists, without reading or downloading it.

        Raises:
            T2TError: it does not exist.
        """

    def close(self) -> None:  # noqa: B027 (optional)
        """Removes temporary files after the last read."""


def pair_fault(pair: Any) -> str | None:
    """Describes the fault of an invalid pair (source, target); `None` if it is valid."""
    if not isinstance(pair, tuple | list):
        return f"is {_kind_of(pair)}, not a tuple (source, target)"
    if len(pair) != 2:
        return f"has {len(pair)} sides, not 2"
    for side in pair:
        if not isinstance(side, str):
            return f"has a side that is {_kind_of(side)}, not a str"
        if "\n" in side:
            return "has a line feed in it: replace it by a space"
        if not side.isascii() and any("\ud800" <= character <= "\udfff" for character in side):
            return "has half a surrogate pair in it, which is no character"
    return None


def _kind_of(value: Any) -> str:
    return "None" if value is None else type(value).__name__
