"""Sharded TFRecord files of `tf.train.Example`, as T2T writes them.

Each example has two int64 lists, `inputs` and `targets`. Writing needs no TensorFlow, so that many
processes can start fast; reading is TensorFlow's own.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    import tensorflow as tf

CRC32C_POLYNOMIAL = 0x82F63B78  # Castagnoli's, reflected
CRC_MASK_DELTA = 0xA282EAD8  # TFRecord's
CRC_CHUNK_BYTES = 1 << 20  # padded size of the records whose checksums are computed together


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
        raise T2TError(f"{data_dir}: no shards {name}-{split}-*; run t2t-datagen --problem={name}")
    if len(counts) > 1:
        listed = " and ".join(f"-of-{count:05d}" for count in sorted(counts))
        raise T2TError(
            f"{data_dir}: {name}-{split} has shards of different sets, {listed}; remove one of them"
        )
    count = counts.pop()
    names = [shard_name(name, split, index, count) for index in range(count)]
    if missing := [shard for shard in names if shard not in found]:
        raise T2TError(
            f"{data_dir}: shard {missing[0]} is missing; run t2t-datagen --problem={name} to make it again"
        )
    return [data_dir / shard for shard in names]


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Opens `path` for writing under a temporary name; it gets its own name when all is on the disk."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def encode_example(inputs: Sequence[int], targets: Sequence[int]) -> bytes:
    """A serialised `tf.train.Example` with the int64 lists `inputs` and `targets`, ids from 0."""
    return _field(1, _feature(b"inputs", inputs) + _feature(b"targets", targets))


def write_shard(path: Path, examples: Sequence[bytes]) -> None:
    """Writes serialised examples in their order, whole or not at all.

    Args:
        path: the shard's own name; until all is written it is called `.NAME.tmp`.
        examples: what `encode_example` gives.
    """
    headers = [struct.pack("<Q", len(example)) for example in examples]
    header_checks, example_checks = _masked_crc32c(headers), _masked_crc32c(examples)
    with writing(path) as file:
        for header, header_check, example, check in zip(
            headers, header_checks, examples, example_checks, strict=True
        ):
            file.write(header + struct.pack("<I", header_check) + example + struct.pack("<I", check))


def remove_temporary(data_dir: Path, name: str) -> None:
    """Removes what an interrupted run left behind under the temporary names of `writing`."""
    for pattern in (f".{name}-*.tmp", f".{name}.*.tmp", f".vocab.{name}.*.tmp"):
        for path in data_dir.glob(pattern):
            path.unlink(missing_ok=True)


def dataset(paths: Sequence[Path]) -> tf.data.Dataset:
    """The examples of shards in file order: {"inputs", "targets"}, each int32 [length].

    A damaged shard raises `tf.errors.DataLossError` while the dataset is read: see `naming_damage`.
    """
    import tensorflow as tf

    return _raw(paths).map(parse_example, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)


def parse_example(serialised: tf.Tensor) -> dict[str, tf.Tensor]:
    """A serialised example (string scalar) -> {"inputs", "targets"}, each int32 [length]."""
    import tensorflow as tf

    ids = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
    example = tf.io.parse_single_example(serialised, {"inputs": ids, "targets": ids})
    return {name: tf.cast(values, tf.int32) for name, values in example.items()}


def read(paths: Sequence[Path]) -> Iterator[tuple[list[int], list[int]]]:
    """The ids (inputs, targets) of all examples of shards, in file order.

    Raises:
        T2TError: a shard is damaged; it is named.
    """
    with naming_damage(paths):
        for example in dataset(paths).as_numpy_iterator():
            yield example["inputs"].tolist(), example["targets"].tolist()


@contextmanager
def naming_damage(paths: Sequence[Path]) -> Iterator[None]:
    """Turns TensorFlow's error about a damaged record, raised inside, into one that names the shard.

    Raises:
        T2TError: one of `paths` is damaged; with the byte that TensorFlow names.
    """
    import tensorflow as tf

    try:
        yield
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError):
        for path in paths:
            _check(path)
        raise


def _check(path: Path) -> None:
    import tensorflow as tf

    try:
        for serialised in _raw([path]):
            parse_example(serialised)
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        reason = re.search(r"(corrupted|truncated) record at \d+", error.message)
        said = reason[0] if reason else "not a record of inputs and targets"
        raise T2TError(f"{path}: damaged ({said}); remove it and run t2t-datagen again") from error


def _raw(paths: Sequence[Path]) -> tf.data.Dataset:
    import tensorflow as tf

    return tf.data.TFRecordDataset([str(path) for path in paths], buffer_size=1 << 20)


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


def _crc32c_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(CRC32C_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


_CRC32C_TABLE = _crc32c_table()


def _masked_crc32c(blobs: Sequence[bytes]) -> list[int]:
    """TFRecord's masked CRC-32C of each blob, byte position by byte position over many blobs at once."""
    by_length = sorted(range(len(blobs)), key=lambda index: len(blobs[index]), reverse=True)
    checks = np.zeros(len(blobs), np.uint32)
    first = 0
    while first < len(blobs):
        longest = max(1, len(blobs[by_length[first]]))
        chunk = by_length[first : first + max(1, CRC_CHUNK_BYTES // longest)]
        checks[chunk] = _crc32c_of_descending([blobs[index] for index in chunk])
        first += len(chunk)
    rotated = (checks >> 15) | (checks << 17)
    return (rotated + np.uint32(CRC_MASK_DELTA)).tolist()


def _crc32c_of_descending(blobs: list[bytes]) -> np.ndarray:
    """CRC-32C of each of some blobs, sorted from the longest to the shortest."""
    lengths = np.array([len(blob) for blob in blobs])
    longest = int(lengths[0])
    joined = b"".join(blob.ljust(longest, b"\0") for blob in blobs)
    columns = np.ascontiguousarray(np.frombuffer(joined, np.uint8).reshape(len(blobs), longest).T)
    reaching = np.searchsorted(-lengths, -np.arange(longest), side="left")  # blobs longer than a position
    crc = np.full(len(blobs), 0xFFFFFFFF, np.uint32)
    for column, count in zip(columns, reaching.tolist(), strict=True):
        active = crc[:count]
        crc[:count] = _CRC32C_TABLE[(active ^ column[:count]) & 0xFF] ^ (active >> 8)
    return ~crc
