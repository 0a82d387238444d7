"""Shards: TFRecord files of `tf.train.Example`, as T2T writes them.

Each example has two int64 lists, `inputs` and `targets`, and may have a float, its `weight`, and an int64
list, its word `alignment`:

    Example { Features features = 1; }    Features { map<string, Feature> feature = 1; }
    Feature { oneof { bytes_list = 1; float_list = 2; int64_list = 3; } }    each list { repeated value = 1; }

Values are packed; `examples` parses them. Files are written and read without
TensorFlow, so that worker processes start fast, and errors name the byte at which a shard is corrupt.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import google_crc32c

from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.utils.files import atomic_write

CRC_MASK_DELTA = 0xA282EAD8  # TFRecord's
LENGTH, CHECK = struct.Struct("<Q"), struct.Struct("<I")
HEADER_BYTES = LENGTH.size + CHECK.size
READ_BUFFER = 1 << 18  # bytes
MISSING = "missing"
FLOAT = struct.Struct("<f")


class CorpusShards(NamedTuple):
    """Shards of a corpus.

    Attributes:
        name: the corpus's; "" in data of one source.
        paths: of the shards, in order.
        examples: their number in all shards.
        weight: the share of training examples from here is `weight` / the sum of all.
    """

    name: str
    paths: list[Path]
    examples: int
    weight: float = 1.0


@dataclass(frozen=True)
class SplitData:
    """The examples of a split.

    Attributes:
        corpora: at least one.
        swapped: whether inputs and targets are swapped when they are read.
        weighted: whether examples have weights.
        aligned: whether examples have word alignments.
    """

    corpora: Sequence[CorpusShards]
    swapped: bool = False
    weighted: bool = False
    aligned: bool = False

    @property
    def paths(self) -> list[Path]:
        """The shards of all corpora, in order."""
        return [path for corpus in self.corpora for path in corpus.paths]


def shard_name(name: str, split: str, index: int, count: int) -> str:
    """Returns T2T's name of a shard, such as "translate_ende-train-00000-of-00100"."""
    return f"{name}-{split}-{index:05d}-of-{count:05d}"


def checked_paths(data_dir: Path, name: str, split: str, sizes: Sequence[int]) -> list[Path]:
    """Returns the paths of all shards of a split, in order, given their sizes in bytes.

    Raises:
        T2TError: one is missing, or has another size.
    """
    paths = [data_dir / shard_name(name, split, index, len(sizes)) for index in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        if found := size_fault(path, size):
            raise T2TError(f"{path}: {found}; ", *remedy(path))
    return paths


def size_fault(path: Path, size: int) -> str:
    """Returns `MISSING`, or describes another size in bytes than that of a shard; "" if it is right."""
    if not path.exists():
        return MISSING
    actual = path.stat().st_size
    return "" if actual == size else f"{actual} bytes instead of {size}"


def write_shard(path: Path, examples: Sequence[bytes]) -> None:
    """Writes a shard of examples from `encode_example`, atomically; its temporary name is `.NAME.tmp`."""
    with atomic_write(path) as file:
        for example in examples:
            length = LENGTH.pack(len(example))
            file.write(length + _check(length) + example + _check(example))


def read_shard(path: Path, block: int) -> Iterator[list[bytes]]:
    """Yields the serialised examples of a shard in their order, up to `block` at a time.

    Raises:
        T2TError: the shard is missing, truncated or corrupt; names the byte at which the unreadable record
            begins.
    """
    try:
        with _opened(path) as file:
            examples = _examples(file)
            while records := list(islice(examples, block)):
                yield records
    except ValueError as error:
        raise T2TError(f"{path}: {error}; ", *remedy(path)) from error


def fault(path: Path, size: int) -> str:
    """Describes the fault of a shard: as `size_fault`, or where it is corrupt; "" if it is valid.

    Raises:
        T2TError: it cannot be read.
    """
    if found := size_fault(path, size):
        return found
    try:
        with _opened(path) as file:
            deque(_examples(file), maxlen=0)
    except ValueError as error:
        return str(error)
    return ""


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a shard; raises T2TError where it cannot be read."""
    try:
        with path.open("rb", READ_BUFFER) as file:
            yield file
    except OSError as error:
        raise T2TError(f"{path}: cannot be read ({error.strerror})") from error


def remedy(path: Path) -> tuple[str, CommandLine]:
    """Returns the end of an error's message: the command that makes a shard again."""
    name, *_ = path.name.rsplit("-", 4)  # NAME-SPLIT-00000-of-00001
    return "to make this shard again, run ", remake(name, path.parent)


def remake(name: str, data_dir: Path) -> CommandLine:
    """The command that makes missing or corrupt files of data whose metadata is valid."""
    return CommandLine("t2t-datagen", problem=name, data_dir=data_dir)


def _examples(file: BinaryIO) -> Iterator[bytes]:
    """Yields the examples of a shard; raises ValueError for one that is unreadable."""
    begin = 0
    while header := file.read(HEADER_BYTES):
        example = check = b""
        length = header[: LENGTH.size]
        if header == length + _check(length):
            example = file.read(*LENGTH.unpack(length))
            check = file.read(CHECK.size)
        if check != _check(example):
            raise ValueError(f"truncated or corrupt at byte {begin}")
        yield example
        begin += HEADER_BYTES + len(example) + CHECK.size


def _check(content: bytes) -> bytes:
    """Returns TFRecord's masked CRC-32C, in the file's byte order."""
    crc = google_crc32c.value(content)
    rotated = (crc >> 15) | (crc << 17)
    return CHECK.pack((rotated + CRC_MASK_DELTA) & 0xFFFFFFFF)


def encode_example(
    inputs: Sequence[int],
    targets: Sequence[int],
    weight: float | None = None,
    links: Sequence[int] | None = None,
) -> bytes:
    """Serialises a `tf.train.Example` with the int64 lists `inputs` and `targets`, which are not negative.

    With a weight, it also has the float list `weight` of one number; with links, those of `token_links`, the
    int64 list `alignment`.
    """
    features = _feature(b"inputs", inputs) + _feature(b"targets", targets)
    if links is not None:
        features += _feature(b"alignment", links)
    if weight is not None:
        floats = field(2, field(1, FLOAT.pack(weight)))
        features += field(1, field(1, b"weight") + field(2, floats))
    return field(1, features)


@lru_cache(maxsize=1 << 17)
def varint(value: int) -> bytes:
    """Encodes a protocol buffer's varint of a number that is not negative."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number: int, content: bytes) -> bytes:
    """Encodes a protocol buffer's length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def _feature(name: bytes, ids: Sequence[int]) -> bytes:
    """Encodes an entry of `Features.feature`: the name and a `Feature` with an `Int64List`."""
    int64_list = field(1, b"".join(map(varint, ids)))
    return field(1, field(1, name) + field(2, field(3, int64_list)))
