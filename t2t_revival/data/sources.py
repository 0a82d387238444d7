"""Sources of sentence pairs: `--data_source`.

`wmt14` and `tfds:NAME/CONFIG` read TensorFlow Datasets, `hf:OWNER/NAME/CONFIG` the Hugging Face Hub, a folder
holds `train.en train.de dev.en dev.de [test.en test.de]` (plain or .gz), `sample` is built in. A source reads
nothing when it is created, streams its pairs, and can be pickled.
"""

from __future__ import annotations

import filecmp
import hashlib
import math
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from t2t_revival import sample_corpus
from t2t_revival.data.base_source import (
    SPLITS,
    TRAIN,
    IndexedFile,
    Row,
    Source,
    choices_for,
    index_text,
    plain_or_packed,
    text_lines,
    unpack,
)
from t2t_revival.data.library_sources import HuggingFaceSource, TfdsSource
from t2t_revival.data.word_alignment import checked_lines, format_pharaoh, parse_pharaoh
from t2t_revival.errors import T2TError


def source(
    name: str, source_lang: str, target_lang: str, tfds_default: str = "", tmp_dir: Path | None = None
) -> Source:
    """Returns the source of a `--data_source`: `wmt14`, `tfds:...`, `hf:...`, `sample`, or a folder.

    `tfds_default` is the NAME/CONFIG of `wmt14`, "" if there is none for these languages. Files are unpacked
    in `tmp_dir`, or in the system's temporary folder.

    Raises:
        T2TError: there is no `wmt14` for these languages.
    """
    if name == "sample":
        return SampleSource(source_lang, target_lang)
    if name.startswith("tfds:"):
        return TfdsSource(name.removeprefix("tfds:"), source_lang, target_lang)
    if name.startswith("hf:"):
        return HuggingFaceSource(name.removeprefix("hf:"), source_lang, target_lang)
    if name != "wmt14":
        return FolderSource(name, source_lang, target_lang, tmp_dir)
    if not tfds_default:
        raise T2TError(
            f"--data_source=wmt14: no WMT 2014 set from {source_lang} to {target_lang}; "
            + choices_for(source_lang, target_lang)
        )
    return TfdsSource(tfds_default, source_lang, target_lang)


class SampleSource(Source):
    """The built-in sample corpus in English, German and French."""

    kind = name = "sample"
    languages = ("en", "de", "fr")

    def __init__(self, source_lang: str, target_lang: str) -> None:
        self.source_lang, self.target_lang = source_lang, target_lang

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def count(self, split: str) -> int:
        return len(sample_corpus.lines(f"{split}.en"))

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        sides = [sample_corpus.lines(f"{split}.{language}")[start:stop] for language in self._languages()]
        yield from zip(*sides, strict=True)

    def alignments(self, split: str, start: int, stop: int) -> Iterator[str] | None:
        source_lang, target_lang = self._languages()
        if source_lang == target_lang:
            return None
        first, second = sorted((source_lang, target_lang), key=self.languages.index)
        lines = sample_corpus.lines(f"{split}.{first}-{second}.align")[start:stop]
        if first == source_lang:
            return iter(lines)
        return (format_pharaoh(link[::-1] for link in parse_pharaoh(line).possible) for line in lines)

    def _languages(self) -> tuple[str, str]:
        for language in (self.source_lang, self.target_lang):
            if language not in self.languages:
                raise T2TError(f"--data_source=sample has {', '.join(self.languages)}, not {language!r}")
        return self.source_lang, self.target_lang


class FolderSource(Source):
    r"""Aligned plain text, one sentence per line; UTF-8, optionally .gz.

    A file train.weights may have a number for each pair of train; train.align, dev.align and test.align may
    have the word alignment of each pair of their split. Only "\n" ends a line; a "\r" before it and a byte
    order mark are removed.
    """

    kind = "folder"

    def __init__(self, folder: str, source_lang: str, target_lang: str, tmp_dir: Path | None = None) -> None:
        self._data_source = folder
        self._folder = Path(folder).expanduser().resolve()
        self._tmp_dir = (tmp_dir or Path(tempfile.gettempdir())).absolute()
        self.name = str(self._folder)
        self.source_lang, self.target_lang = source_lang, target_lang

    def splits(self) -> tuple[str, ...]:
        return tuple(self._sides)

    def count(self, split: str) -> int:
        return self._sides[split][0].lines

    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        source_lines, target_lines = (text_lines(side, start, stop) for side in self._sides[split])
        yield from zip(source_lines, target_lines, strict=True)

    def rows(self, split: str, start: int, stop: int) -> Iterator[Row]:
        rows = super().rows(split, start, stop)
        if split != TRAIN or self._weights is None:
            return rows
        lines = text_lines(self._weights, start, stop)
        return (row._replace(weight=float(line)) for row, line in zip(rows, lines, strict=True))

    def has_weights(self) -> bool:
        return self._weights is not None

    def alignments(self, split: str, start: int, stop: int) -> Iterator[str] | None:
        file = self._alignments.get(split)
        return None if file is None else text_lines(file, start, stop)

    @cached_property
    def _weights(self) -> IndexedFile | None:
        """The file train.weights; raises T2TError if it does not fit train, or has something else in it."""
        index = self._beside("train", "weights")
        if index is None:
            return None
        file, total = self._file("train", "weights"), 0.0
        for number, line in enumerate(text_lines(index, 0, index.lines), start=1):
            try:
                weight = float(line)
            except ValueError:
                weight = math.nan
            if not 0 <= weight < math.inf:
                raise T2TError(f"{file}, line {number}: {line!r} is not a number of 0 or more")
            total += weight
        if not total:
            raise T2TError(f"{file}: all weights are 0, so that nothing would be learned")
        return index

    @cached_property
    def _alignments(self) -> dict[str, IndexedFile]:
        """The files of alignments by split; raises T2TError if one does not fit its split."""
        indexes = {split: self._beside(split, "align") for split in self.splits()}
        found = {split: index for split, index in indexes.items() if index is not None}
        for split, index in found.items():
            pairs = self.pairs(split, 0, index.lines)
            for _ in checked_lines(text_lines(index, 0, index.lines), pairs, str(self._file(split, "align"))):
                pass
        return found

    def _beside(self, split: str, name: str) -> IndexedFile | None:
        """Returns a file with a line for each pair of a split, `None` if there is none."""
        file = self._file(split, name)
        if not file.exists():
            return None
        index, pairs = self._index(file), self.count(split)
        if index.lines != pairs:
            raise T2TError(
                f"{file} has {index.lines} lines, and {split} has {pairs} pairs: write one for each"
            )
        return index

    def check(self) -> None:
        if not self._folder.is_dir():
            raise T2TError(f"--data_source={self._data_source}: no such folder; {self._choices}")

    def files(self) -> list[Path]:
        names = [self.source_lang, self.target_lang, "align"]
        files = [self._file(split, name) for split in SPLITS for name in names]
        return [file for file in [*files, self._file("train", "weights")] if file.exists()]

    def close(self) -> None:
        """Removes the unpacked files."""
        for file in self.files():
            if file.suffix == ".gz":
                self._unpacked(file).unlink(missing_ok=True)

    @cached_property
    def _sides(self) -> dict[str, tuple[IndexedFile, IndexedFile]]:
        self.check()
        sides = {}
        for split in SPLITS:
            files = [self._file(split, language) for language in (self.source_lang, self.target_lang)]
            if split in self.optional and not any(file.exists() for file in files):
                continue
            source_side, target_side = map(self._index, files)
            if source_side.lines != target_side.lines:
                raise T2TError(
                    f"the sides are not aligned: {files[0]} has {source_side.lines} lines, "
                    f"{files[1]} has {target_side.lines}"
                )
            if not source_side.lines:
                raise T2TError(f"{files[0]}: the file is empty")
            sides[split] = source_side, target_side
        return sides

    def _file(self, split: str, language: str) -> Path:
        """Returns the file of a side, whose name may have pt_BR or pt-BR."""
        names = dict.fromkeys([language, language.replace("_", "-"), language.replace("-", "_")])
        files = [plain_or_packed(self._folder / f"{split}.{name}") for name in names]
        found = [file for file in files if file.exists()] or files
        if len(found) > 1 and found[1].exists() and not filecmp.cmp(found[0], found[1], shallow=False):
            raise T2TError(f"{found[0]} and {found[1].name} differ: remove one of them")
        return found[0]

    def _index(self, file: Path) -> IndexedFile:
        if not file.is_file():
            raise T2TError(f"{file}: no such file, nor {file.name}.gz; {self._choices}")
        if file.suffix != ".gz":
            return index_text(file, file)
        plain = self._unpacked(file)
        if not plain.exists():
            unpack(file, plain)
        return index_text(plain, file)

    def _unpacked(self, file: Path) -> Path:
        """Returns the path of the unpacked file, which differs between versions of the compressed one."""
        status = file.stat()
        version = f"{file} {status.st_size} {status.st_mtime_ns}"
        digest = hashlib.sha256(version.encode()).hexdigest()[:16]
        return self._tmp_dir / f"t2t-{digest}-{file.stem}"
