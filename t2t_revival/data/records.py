"""Sharded TFRecord files of `tf.train.Example`, as T2T writes them.

Each example has two int64 lists, `inputs` and `targets`. Files are written and read without TensorFlow,
so that many processes can start fast and a damaged shard is always named with the byte.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import google_crc32c

from t2t_revival.errors import T2TError
from t2t_revival.files import writing
from t2t_revival.hints import remake_command

CRC_MASK_DELTA = 0xA282EAD8  # TFRecord's
LENGTH, CHECK = struct.Struct("<Q"), struct.Struct("<I")
HEADER_BYTES = LENGTH.size + CHECK.size
READ_BUFFER = 1 << 18  # bytes
FAULT_BLOCK = 1024  # records that are held while a shard is verified


class ReversedShards(list[Path]):
    """Shards of which the inputs are read as targets and the targets as inputs."""


def shard_name(name: str, split: str, index: int, count: int) -> str:
    """T2T's name of a shard, such as "translate_ende-train-00000-of-00100"."""
    return f"{name}-{split}-{index:05d}-of-{count:05d}"


def shard_paths(data_dir: Path, name: str, split: str) -> list[Path]:
    """All shards of a split, in order.

    Raises:
        T2TError: there is none, one is missing (it is named), or shards of different counts are mixed.
    """
    pattern = re.compile(rf"{re.escape(name)}-{re.escape(split)}-\d{{5}}-of-(\d{{5}})")
    found = {
        path.name: match for path in data_dir.glob(f"{name}-*") if (match := pattern.fullmatch(path.name))
    }
    counts = {int(match[1]) for match in found.values()}
    if not counts:
        raise T2TError(f"{data_dir}: no shards {name}-{split}-*; run {remake_command(name, data_dir)}")
    if len(counts) > 1:
        listed = " and ".join(f"-of-{count:05d}" for count in sorted(counts))
        raise T2TError(
            f"{data_dir}: {name}-{split} has shards of different sets, {listed}; remove one of them"
        )
    count = counts.pop()
    names = [shard_name(name, split, index, count) for index in range(count)]
    if missing := [shard for shard in names if shard not in found]:
        raise T2TError(
            f"{data_dir}: shard {missing[0]} is missing; to make it, run {remake_command(name, data_dir)}"
        )
    return [data_dir / shard for shard in names]


def encode_example(inputs: Sequence[int], targets: Sequence[int]) -> bytes:
    """A serialised `tf.train.Example` with the int64 lists `inputs` and `targets`, ids from 0."""
    return _field(1, _feature(b"inputs", inputs) + _feature(b"targets", targets))


def write_shard(path: Path, examples: Sequence[bytes]) -> None:
    """Writes serialised examples in their order, whole or not at all.

    Args:
        path: the shard's own name; until all is written it is called `.NAME.tmp`.
        examples: what `encode_example` gives.
    """
    with writing(path) as file:
        for example in examples:
            length = LENGTH.pack(len(example))
            file.write(length + _check(length) + example + _check(example))


def read_shard(path: Path, block: int) -> Iterator[list[bytes]]:
    """The serialised examples of a shard in their order, up to `block` at a time.

    Raises:
        T2TError: there is no such shard, or it is truncated or damaged; names the byte where the record
            begins that cannot be read.
    """
    try:
        with path.open("rb", READ_BUFFER) as file:
            examples = _examples(file, path)
            while some := list(islice(examples, block)):
                yield some
    except FileNotFoundError as error:
        raise T2TError(f"{path}: no such shard; {remedy(path)}") from error
    except OSError as error:
        raise T2TError(f"{path}: cannot be read ({error.strerror})") from error


def fault(path: Path, size: int | None = None) -> str | None:
    """What is wrong with a shard, of which all is read; None: nothing.

    Args:
        path: the shard.
        size: bytes that it must have; None: any.
    """
    try:
        for _ in read_shard(path, FAULT_BLOCK):
            pass
    except DamagedError as error:
        return f"truncated or damaged at byte {error.byte}"
    found = path.stat().st_size
    return f"{found} bytes instead of {size}" if size not in (None, found) else None


class DamagedError(T2TError):
    """A shard cannot be read from `byte` on, where a record begins."""

    def __init__(self, path: Path, byte: int) -> None:
        self.byte = byte
        super().__init__(f"{path}: truncated or damaged at byte {byte}; {remedy(path)}")


def remedy(path: Path) -> str:
    """The end of an error message: how to make a shard again."""
    name, *_ = path.name.rsplit("-", 4)  # NAME-SPLIT-00000-of-00001
    return f"to make this shard again, run {remake_command(name, path.parent)}"


def _examples(file: BinaryIO, path: Path) -> Iterator[bytes]:
    begin = 0
    while header := file.read(HEADER_BYTES):
        example = check = b""
        length = header[: LENGTH.size]
        if header == length + _check(length):
            example = file.read(*LENGTH.unpack(length))
            check = file.read(CHECK.size)
        if check != _check(example):
            raise DamagedError(path, begin)
        yield example
        begin += HEADER_BYTES + len(example) + CHECK.size


def remove_temporary(data_dir: Path, name: str) -> None:
    """Removes what an interrupted run left behind under the temporary names of `writing`."""
    for pattern in (f".{name}-*.tmp", f".{name}.*.tmp", f".vocab.{name}.*.tmp"):
        for path in data_dir.glob(pattern):
            path.unlink(missing_ok=True)


def _check(content: bytes) -> bytes:
    """TFRecord's masked CRC-32C, as it stands in the file."""
    crc = google_crc32c.value(content)
    rotated = (crc >> 15) | (crc << 17)
    return CHECK.pack((rotated + CRC_MASK_DELTA) & 0xFFFFFFFF)


@lru_cache(maxsize=1 << 17)
def _varint(value: int) -> bytes:
    """A protocol buffer's varint of a number from 0."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _field(number: int, content: bytes) -> bytes:
    """A protocol buffer's length-delimited field."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _feature(name: bytes, ids: Sequence[int]) -> bytes:
    """One entry of `Features.feature`: the name and a `Feature` with an `Int64List`."""
    int64_list = _field(1, b"".join(map(_varint, ids)))
    return _field(1, _field(1, name) + _field(2, _field(3, int64_list)))
