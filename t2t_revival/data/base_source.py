"""`Source`, the class of all sources of sentence pairs, users' own included; and lines of large files."""

from __future__ import annotations

import abc
import gzip
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from t2t_revival.errors import T2TError
from t2t_revival.utils.files import atomic_write, is_file_name, unpacking
from t2t_revival.utils.texts import shown

SPLITS = TRAIN, DEV, TEST = ("train", "dev", "test")
Pair = tuple[str, str] | Mapping[str, str]  # (source, target), or T2T's {"inputs": source, "targets": target}
Pairs = Iterable[Pair] | Callable[[], Iterable[Pair]]
INDEX_STEP = 10_000  # lines between indexed byte offsets
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class IndexedFile:
    """A file of lines, with their number and the byte offset of every INDEX_STEPth line."""

    path: Path
    lines: int
    offsets: tuple[int, ...]


def index_text(path: Path, shown: Path) -> IndexedFile:
    """Indexes the lines of a file and checks that they are UTF-8; errors name the file `shown`."""
    offsets, offset, number = [], 0, 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if (number - 1) % INDEX_STEP == 0:
                offsets.append(offset)
            offset += len(line)
            _decoded(line, shown, number)
    return IndexedFile(path, number, tuple(offsets))


def _decoded(line: bytes, shown: Path, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise T2TError(f"{shown}, line {number}: not UTF-8 ({error.reason}); convert the file") from error


def read_text(path: Path) -> Iterator[str]:
    """Yields the lines of a text file, plain or .gz, without line ends and byte order mark.

    Raises:
        T2TError: a line is not UTF-8, or the .gz file is corrupt.
        OSError: the file cannot be read.
    """
    with unpacking(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as content:
        for number, line in enumerate(content, start=1):
            plain = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            yield _decoded(plain, path, number).removesuffix("\n").removesuffix("\r")


def numbered_lines(file: IndexedFile, start: int, stop: int) -> Iterator[bytes]:
    """Yields the lines number `start` (from 0) up to `stop` of a file, with their line feeds."""
    if start >= min(stop, file.lines):
        return
    with file.path.open("rb") as content:
        content.seek(file.offsets[start // INDEX_STEP])
        skipped = start % INDEX_STEP
        yield from islice(content, skipped, skipped + stop - start)


def text_lines(side: IndexedFile, start: int, stop: int) -> Iterator[str]:
    """Yields the lines number `start` up to `stop` of a text file, without line ends."""
    for number, line in enumerate(numbered_lines(side, start, stop), start):
        content = line.removeprefix(BYTE_ORDER_MARK) if number == 0 else line
        yield content.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")


def plain_or_packed(plain: Path) -> Path:
    """Returns `plain`, or the .gz file beside it if only that exists."""
    packed = plain.with_name(f"{plain.name}.gz")
    return packed if packed.exists() and not plain.exists() else plain


def unpack(packed: Path, plain: Path) -> None:
    """Unpacks a .gz file, atomically."""
    plain.parent.mkdir(parents=True, exist_ok=True)
    with unpacking(packed), gzip.open(packed) as content, atomic_write(plain) as file:
        shutil.copyfileobj(content, file, 1 << 20)


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
            raise T2TError(
                f"{self.name or type(self).__name__}: no {missing[0]} split, only {', '.join(splits)}"
            )
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

    @property
    def _choices(self) -> str:
        return choices_for(self.source_lang, self.target_lang)


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
        pairs = self._pairs[split]
        with atomic_write(path) as file:
            for number, pair in enumerate(pairs() if callable(pairs) else pairs, start=1):
                sides: Any = pair
                if isinstance(pair, Mapping) and set(pair) == {"inputs", "targets"}:
                    sides = pair["inputs"], pair["targets"]
                if fault := pair_fault(sides):
                    raise T2TError(f"PairsSource {self.name!r}: pair {number} of {split} {fault}")
                file.write(f"{json.dumps(sides)}\n".encode())
        index = index_text(path, path)
        if not index.lines:
            raise T2TError(
                f"PairsSource {self.name!r}: no pairs of {split} (a generator is exhausted after one pass: "
                "give the function instead)"
            )
        return index
