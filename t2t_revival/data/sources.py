"""Where sentence pairs come from: `--data_source`.

`wmt14` and `tfds:NAME/CONFIG` read TensorFlow Datasets, a folder holds `train.en train.de dev.en dev.de
[test.en test.de]` (plain or .gz), `sample` is built in. A source does nothing until it is asked for
pairs, holds few of them in memory, and can be sent to other processes.
"""

from __future__ import annotations

import abc
import gzip
import hashlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from t2t_revival.errors import T2TError
from t2t_revival.files import writing

SPLITS = ("train", "dev", "test")
CHOICES = (
    "--data_source takes a folder with train.en train.de dev.en dev.de (or your languages), "
    "sample (built in), or tfds:NAME/CONFIG (prepared where TFDS_DATA_DIR points, or downloaded)"
)
INDEX_STEP = 10_000  # lines from one remembered byte offset to the next
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source(abc.ABC):
    """Sentence pairs in splits named "train", "dev" and, where there is one, "test".

    A source of one's own has the three methods; the attributes have defaults.

    Attributes:
        kind: "folder", "tfds" or "sample", for each of which a problem may have a vocabulary size of its own.
        name: the same for the same data, and itself a valid --data_source; empty: the --data_source that it
            was made for.
        source_lang: the language of a pair's first side, as messages call it.
        target_lang: that of its second side.
    """

    kind: str = "own"
    name: str = ""
    source_lang: str = "inputs"
    target_lang: str = "targets"

    @abc.abstractmethod
    def splits(self) -> tuple[str, ...]:
        """The splits that exist.

        Raises:
            T2TError: the data cannot be found.
        """

    @abc.abstractmethod
    def count(self, split: str) -> int:
        """How many pairs a split has, empty ones included.

        Raises:
            T2TError: the data cannot be read.
        """

    @abc.abstractmethod
    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """The pairs (source, target) of a split from number `start` up to `stop`; no "\\n" in them.

        Raises:
            T2TError: the data cannot be read.
        """

    def check(self) -> None:  # noqa: B027 (nothing to do for most)
        """Checks that the data is there; reads and downloads nothing.

        Raises:
            T2TError: it is not.
        """

    def close(self) -> None:  # noqa: B027 (nothing to do for most)
        """Removes temporary files, once all has been read."""


def source(
    name: str, source_lang: str, target_lang: str, tfds_default: str = "", tmp_dir: Path | None = None
) -> Source:
    """The source that a `--data_source` names.

    Args:
        name: `wmt14`, `tfds:NAME/CONFIG`, `sample`, or a folder.
        source_lang: such as "en".
        target_lang: such as "de".
        tfds_default: what `wmt14` is short for.
        tmp_dir: where compressed files are unpacked; None: the system's folder for such.

    Raises:
        T2TError: `wmt14` where there is no such set for these languages.
    """
    if name == "sample":
        return SampleSource(source_lang, target_lang)
    if name.startswith("tfds:"):
        return TfdsSource(name.removeprefix("tfds:"), source_lang, target_lang)
    if name != "wmt14":
        return FolderSource(name, source_lang, target_lang, tmp_dir)
    if not tfds_default:
        raise T2TError(f"--data_source=wmt14: no WMT 2014 set from {source_lang} to {target_lang}; {CHOICES}")
    return TfdsSource(tfds_default, source_lang, target_lang)


class SampleSource(Source):
    """The built-in corpus: a grammar's sentences in English, German and French."""

    kind = name = "sample"

    def __init__(self, source_lang: str, target_lang: str) -> None:
        self.source_lang, self.target_lang = source_lang, target_lang

    def splits(self) -> tuple[str, ...]:
        """See `Source.splits`."""
        return SPLITS

    def count(self, split: str) -> int:
        """See `Source.count`."""
        from t2t_revival.data.grammar import DEFAULT_SIZES

        return DEFAULT_SIZES[split]

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """See `Source.pairs`."""
        languages = {"en": "english", "de": "german", "fr": "french"}
        for language in (self.source_lang, self.target_lang):
            if language not in languages:
                raise T2TError(f"--data_source=sample: it has {', '.join(languages)}, not {language!r}")
        source_side, target_side = languages[self.source_lang], languages[self.target_lang]
        for sentence in _sample(split)[start:stop]:
            yield getattr(sentence, source_side), getattr(sentence, target_side)


@lru_cache(maxsize=len(SPLITS))
def _sample(split: str) -> list[Any]:
    """All sentences of a split; kept so that shards do not each generate them anew."""
    from t2t_revival.data.grammar import generate

    return list(generate(split))


@dataclass(frozen=True)
class IndexedFile:
    """A file of lines: how many there are, and the byte offset of every INDEX_STEPth."""

    path: Path
    lines: int
    offsets: tuple[int, ...]


class FolderSource(Source):
    """Plain text, one sentence per line, both sides aligned; UTF-8, optionally .gz.

    Only "\\n" ends a line; "\\r\\n" and a byte order mark are taken off.
    """

    kind = "folder"

    def __init__(self, folder: str, source_lang: str, target_lang: str, tmp_dir: Path | None = None) -> None:
        self._asked = folder
        self._folder = Path(folder).expanduser().resolve()
        self._tmp_dir = (tmp_dir or Path(tempfile.gettempdir())).absolute()
        self.name = str(self._folder)
        self.source_lang, self.target_lang = source_lang, target_lang

    def splits(self) -> tuple[str, ...]:
        """See `Source.splits`."""
        return tuple(self._sides)

    def count(self, split: str) -> int:
        """See `Source.count`."""
        return self._sides[split][0].lines

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """See `Source.pairs`."""
        source_side, target_side = self._sides[split]
        yield from zip(_lines(source_side, start, stop), _lines(target_side, start, stop), strict=True)

    def check(self) -> None:
        """See `Source.check`."""
        if not self._folder.is_dir():
            raise T2TError(f"--data_source={self._asked}: no such folder; {CHOICES}")

    def close(self) -> None:
        """Removes what was unpacked."""
        for file in self._files():
            self._unpacked(file).unlink(missing_ok=True)

    @cached_property
    def _sides(self) -> dict[str, tuple[IndexedFile, IndexedFile]]:
        self.check()
        sides = {}
        for split in SPLITS:
            files = [self._file(split, language) for language in (self.source_lang, self.target_lang)]
            if split == "test" and not any(file.exists() for file in files):
                continue
            sides[split] = self._aligned(*files)
        return sides

    def _aligned(self, source_file: Path, target_file: Path) -> tuple[IndexedFile, IndexedFile]:
        source_side, target_side = self._index(source_file), self._index(target_file)
        if source_side.lines != target_side.lines:
            raise T2TError(
                f"the sides are not aligned: {source_file} has {source_side.lines} lines, "
                f"{target_file} has {target_side.lines}"
            )
        if not source_side.lines:
            raise T2TError(f"{source_file}: the file is empty")
        return source_side, target_side

    def _file(self, split: str, language: str) -> Path:
        """The plain file, or the compressed one where only that exists."""
        plain = self._folder / f"{split}.{language}"
        packed = plain.with_name(f"{plain.name}.gz")
        return packed if packed.exists() and not plain.exists() else plain

    def _files(self) -> list[Path]:
        files = [self._file(split, lang) for split in SPLITS for lang in (self.source_lang, self.target_lang)]
        return [file for file in files if file.exists() and file.suffix == ".gz"]

    def _index(self, file: Path) -> IndexedFile:
        if not file.is_file():
            raise T2TError(f"{file}: no such file, nor {file.name}.gz; {CHOICES}")
        if file.suffix != ".gz":
            return _index(file, file)
        plain = self._unpacked(file)
        if not plain.exists():
            _unpack(file, plain)
        return _index(plain, file)

    def _unpacked(self, file: Path) -> Path:
        """Where the content of a compressed file lies; another name for another version of the file."""
        status = file.stat()
        version = f"{file} {status.st_size} {status.st_mtime_ns}"
        digest = hashlib.sha256(version.encode()).hexdigest()[:16]
        return self._tmp_dir / f"t2t-{digest}-{file.stem}"


def _unpack(packed: Path, plain: Path) -> None:
    plain.parent.mkdir(parents=True, exist_ok=True)
    try:
        with gzip.open(packed) as content, writing(plain) as file:
            shutil.copyfileobj(content, file, 1 << 20)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise T2TError(f"{packed}: damaged gzip file: {error}") from error


def _index(path: Path, shown: Path) -> IndexedFile:
    """Counts the lines of a file and checks that they are UTF-8; errors name the file `shown`."""
    offsets, offset, number = [], 0, 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if (number - 1) % INDEX_STEP == 0:
                offsets.append(offset)
            offset += len(line)
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise T2TError(f"{shown}, line {number}: not UTF-8 ({error.reason})") from error
    return IndexedFile(path, number, tuple(offsets))


def _lines(side: IndexedFile, start: int, stop: int) -> Iterator[str]:
    """The lines of a text file from number `start` (from 0) up to `stop`, without line ends."""
    for number, line in enumerate(numbered_lines(side, start, stop), start):
        content = line.removeprefix(BYTE_ORDER_MARK) if number == 0 else line
        yield content.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")


def numbered_lines(file: IndexedFile, start: int, stop: int) -> Iterator[bytes]:
    """The lines of a file from number `start` (from 0) up to `stop`, with their line feeds."""
    if start >= min(stop, file.lines):
        return
    with file.path.open("rb") as content:
        content.seek(file.offsets[start // INDEX_STEP])
        skipped = start % INDEX_STEP
        yield from islice(content, skipped, skipped + stop - start)


class TfdsSource(Source):
    """A translation set of TensorFlow Datasets, its `huggingface:` namespace included.

    An example's features are keyed by language, at the top or inside "translation".
    """

    kind = "tfds"
    SPLIT_NAMES = (("train", ("train",)), ("dev", ("validation", "dev", "valid")), ("test", ("test",)))

    def __init__(self, dataset: str, source_lang: str, target_lang: str) -> None:
        self._dataset = dataset
        self._data_dir = os.environ.get("TFDS_DATA_DIR")
        self.name = f"tfds:{dataset}"
        self.source_lang, self.target_lang = source_lang, target_lang

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_builder"}

    def splits(self) -> tuple[str, ...]:
        """See `Source.splits`."""
        return tuple(self._split_names)

    def count(self, split: str) -> int:
        """See `Source.count`."""
        return int(self._builder.info.splits[self._split_names[split]].num_examples)

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        """See `Source.pairs`; a line break inside a sentence becomes a space."""
        import tensorflow_datasets as tfds

        part = f"{self._split_names[split]}[{start}:{stop}]"
        for example in tfds.as_numpy(self._builder.as_dataset(split=part, shuffle_files=False)):
            sides = example.get("translation", example)
            yield self._text(sides, self.source_lang), self._text(sides, self.target_lang)

    def _text(self, sides: dict[str, Any], language: str) -> str:
        if language not in sides:
            raise T2TError(f"--data_source={self.name}: it has {', '.join(sides)}, not {language!r}")
        try:
            return sides[language].decode("utf-8").replace("\n", " ")
        except UnicodeDecodeError as error:
            raise T2TError(f"--data_source={self.name}: a {language} sentence is not UTF-8") from error

    @cached_property
    def _split_names(self) -> dict[str, str]:
        """Our names of the splits that exist -> the set's own."""
        own = self._builder.info.splits
        names = {}
        for split, candidates in self.SPLIT_NAMES:
            if present := [name for name in candidates if name in own and own[name].num_examples]:
                names[split] = present[0]
        if missing := [split for split in ("train", "dev") if split not in names]:
            raise T2TError(f"--data_source={self.name}: no {missing[0]} split, only {', '.join(own)}")
        return names

    @cached_property
    def _builder(self) -> Any:
        import tensorflow_datasets as tfds

        here = self._data_dir == os.environ.get("TFDS_DATA_DIR")  # not so in a worker on another machine
        elsewhere = {} if here else {"data_dir": self._data_dir}
        try:
            builder = tfds.builder(self._dataset, **elsewhere)
            builder.download_and_prepare()
        except Exception as error:  # whatever the set's own code, the network or the disk raises
            reason = str(error).strip().split("\n")[0]
            raise T2TError(
                f"--data_source={self.name}: cannot be loaded ({type(error).__name__}: {reason}); {CHOICES}"
            ) from error
        return builder
