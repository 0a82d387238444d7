"""`Source`, the class of all sources of sentence pairs, users' own included, and its `Row`s."""

from __future__ import annotations

import abc
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from t2t_revival.data.indexed_file import IndexedFile, index_text, numbered_lines
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import atomic_write, is_file_name
from t2t_revival.utils.texts import shown

SPLITS = TRAIN, DEV, TEST = ("train", "dev", "test")
Pair = tuple[str, str] | Mapping[str, str]  # (source, target), or T2T's {"inputs": source, "targets": target}
Pairs = Iterable[Pair] | Callable[[], Iterable[Pair]]


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
        """Returns the existing splits; raises T2TError if the data cannot be found."""

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
        where, number = f"{type(self).__name__}.pairs", start
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
                f"{where} yields {many} pairs of {split} (number {start} up to {stop} of the "
                f"{self.count(split)} that count returns)"
            )

    def has_weights(self) -> bool:
        """Returns whether the rows of train have weights."""
        return False

    def counts(self) -> dict[str, int]:
        """Returns the number of pairs of each split.

        Raises:
            T2TError: "train" or "dev" is missing, or a name would lead out of the data_dir.
        """
        splits = tuple(self.splits())
        if invalid := [split for split in splits if not is_file_name(split)]:
            raise T2TError(f"split {invalid[0]!r}: not a valid name: it becomes part of file names")
        if missing := [split for split in SPLITS if split not in (*splits, *self.optional)]:
            raise T2TError(f"{type(self).__name__}.splits returns {splits}: {missing[0]!r} is missing")
        return {split: self.count(split) for split in splits}

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
    if (
        not isinstance(pair, tuple | list)
        or len(pair) != 2
        or not all(isinstance(side, str) for side in pair)
    ):
        return f"is {shown(pair)}, not a pair of strings (source, target)"
    return "has a line feed in it: replace it by a space" if "\n" in pair[0] or "\n" in pair[1] else None


class PairsSource(Source):
    """Pairs from iterables: lists, generators, or functions that return either.

    Each iterable is read once, from beginning to end, into a temporary file, from which several processes
    make the shards; a generator may be exhausted by this. When an interrupted t2t-datagen resumes, it reads
    them again and must get the same pairs in the same order.

    Args:
        name: equal for equal data.
        splits: for "train", "dev" and optionally "test", an iterable of pairs, or a function without
            arguments that returns one. A pair is (source, target), without line feeds, or T2T's
            {"inputs": source, "targets": target}.
        source_lang: the language of the inputs, such as "en".
        target_lang: the language of the targets.
        tmp_dir: the folder for temporary files that `make_source` is called with. `None` uses the system's.

    Example:
        def make_source(self, data_source, tmp_dir):
            return PairsSource("squares", {"train": squares(0, 90), "dev": squares(90, 100)}, tmp_dir=tmp_dir)

    Raises:
        T2TError: "train" or "dev" is missing.
    """

    def __init__(
        self,
        name: str,
        splits: Mapping[str, Pairs],
        source_lang: str = "inputs",
        target_lang: str = "targets",
        tmp_dir: Path | None = None,
    ) -> None:
        self.name, self.source_lang, self.target_lang = name, source_lang, target_lang
        self._tmp_dir = tmp_dir
        self._pairs = splits
        if missing := [split for split in SPLITS if split not in (*splits, *self.optional)]:
            raise T2TError(f"PairsSource {name!r}: {missing[0]!r} is missing; it has {', '.join(splits)}")

    def __getstate__(self) -> dict[str, Any]:
        """Pickles the files instead of the iterables, which cannot be pickled."""
        self._files  # noqa: B018 (writes them)
        return {name: value for name, value in vars(self).items() if name not in ("_pairs", "_remove")}

    def splits(self) -> tuple[str, ...]:
        return tuple(self._files)

    def count(self, split: str) -> int:
        return self._files[split].lines

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        for line in numbered_lines(self._files[split], start, stop):
            source, target = json.loads(line)
            yield source, target

    def close(self) -> None:
        """Removes the temporary files."""
        if remove := vars(self).get("_remove"):
            remove()

    @cached_property
    def _files(self) -> dict[str, IndexedFile]:
        if self._tmp_dir:
            self._tmp_dir.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="t2t-pairs-", dir=self._tmp_dir))
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return {split: self._write(split, folder / split) for split in SPLITS if split in self._pairs}

    def _write(self, split: str, path: Path) -> IndexedFile:
        """Writes the pairs of a split, each as JSON on a line."""
        number, pairs = 0, self._pairs[split]
        with atomic_write(path) as file:
            for number, pair in enumerate(pairs() if callable(pairs) else pairs, start=1):
                sides: Any = pair
                if isinstance(pair, Mapping) and set(pair) == {"inputs", "targets"}:
                    sides = pair["inputs"], pair["targets"]
                if fault := pair_fault(sides):
                    raise T2TError(f"PairsSource {self.name!r}: pair {number} of {split} {fault}")
                file.write(f"{json.dumps(sides)}\n".encode())
        if not number:
            raise T2TError(
                f"PairsSource {self.name!r}: no pairs of {split} (a generator is exhausted after one pass: "
                "give the function instead)"
            )
        return index_text(path, path)
