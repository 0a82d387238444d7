"""The lines of large files: random access, and in order."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.utils.files import atomic_write, unpacking

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
