"""Reading shards: serialized examples in blocks and chunks, parsed into flat arrays of ids."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.lib.io._pywrap_record_io import RecordIterator

from t2t_revival.errors import T2TError

OPEN_SHARDS = 16  # shards that are read side by side
BLOCK = 1024  # records read and parsed in one step
FRAME_BYTES = 16  # what a TFRecord has around its data: a length and two checksums
FEATURES = {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in ("inputs", "targets")}

Block = tuple[Path, list[bytes]]  # a shard and some of its serialized examples


class Side(NamedTuple):
    """One side of many examples: ids int32 [total] end to end, where each begins and ends int64 [n + 1]."""

    ids: np.ndarray
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Of all examples, int64 [n]."""
        return np.diff(self.offsets)

    def tokens(self, members: np.ndarray) -> int:
        """How many ids some of the examples have together."""
        return int((self.offsets[members + 1] - self.offsets[members]).sum())

    def padded(self, members: np.ndarray, rows: int, width: int) -> np.ndarray:
        """int32 [rows, width], padded with 0; width 0 means that of the longest member."""
        begins, ends = self.offsets[members, None], self.offsets[members + 1, None]  # [n, 1]
        width = width or int((ends - begins).max())
        at = begins + np.arange(width)  # [n, width]
        batch = np.zeros((rows, width), np.int32)
        batch[: len(members)] = np.where(at < ends, self.ids.take(at, mode="clip"), 0)
        return batch


class Pairs(NamedTuple):
    """Many examples, in the order in which they were read."""

    inputs: Side
    targets: Side


def interleave(shards: list[Path], block: int) -> Iterator[Block]:
    """Blocks of up to 16 shards in turn; a shard that ends makes room for the next."""
    waiting = deque(shards)
    reading: deque[tuple[Path, Iterator[list[bytes]]]] = deque()
    while waiting or reading:
        while waiting and len(reading) < OPEN_SHARDS:
            shard = waiting.popleft()
            reading.append((shard, read_shard(shard, block)))
        shard, reader = reading.popleft()
        records = next(reader, None)
        if records is not None:
            reading.append((shard, reader))
            yield shard, records


def chunks(blocks: Iterable[Block], size: int) -> Iterator[list[Block]]:
    """Groups of whole blocks with at least `size` records together; the last may have fewer."""
    chunk: list[Block] = []
    count = 0
    for shard, records in blocks:
        chunk.append((shard, records))
        count += len(records)
        if count >= size:
            yield chunk
            chunk, count = [], 0
    if chunk:
        yield chunk


def read_shard(shard: Path, block: int) -> Iterator[list[bytes]]:
    """Up to `block` serialized examples at a time; T2TError names the shard and the byte.

    TensorFlow's own reader, checksums included, and not a tf.data pipeline within the generator of another:
    it names the byte, and takes no second pool of threads.
    """
    read = 0
    try:
        reader = RecordIterator(str(shard), "")
        while records := list(islice(reader, block)):
            read += sum(map(len, records)) + FRAME_BYTES * len(records)
            yield records
    except tf.errors.NotFoundError as error:
        raise T2TError(f"{shard}: no such shard; generate the data again with t2t-datagen") from error
    except tf.errors.DataLossError as error:
        offset = re.search(r"record at (\d+)", error.message)
        raise _damaged(shard, offset.group(1) if offset else f"{read} or later") from error
    except tf.errors.OpError as error:
        raise T2TError(f"{shard}: cannot be read: {error.message}") from error
    if read != shard.stat().st_size:  # TensorFlow takes a cut within a record's length for the end
        raise _damaged(shard, str(read))


def _damaged(shard: Path, offset: str) -> T2TError:
    return T2TError(
        f"{shard}: truncated or damaged at byte {offset}; delete this shard and generate it again "
        "with t2t-datagen"
    )


def parse(blocks: list[Block]) -> Pairs:
    """The ids of all examples of some blocks; T2TError names the shard that holds something else."""
    lengths: dict[str, list[np.ndarray]] = {name: [np.zeros(1, np.int64)] for name in FEATURES}
    ids: dict[str, list[np.ndarray]] = {name: [] for name in FEATURES}
    for shard, records in blocks:
        try:
            with tf.device("CPU:0"):
                features = tf.io.parse_example(records, FEATURES)
        except tf.errors.OpError as error:
            raise T2TError(f"{shard}: holds something else than examples with lists of ids") from error
        for name, ragged in features.items():
            lengths[name].append(np.diff(ragged.row_splits.numpy()))
            ids[name].append(ragged.values.numpy().astype(np.int32))
            if not lengths[name][-1].all():
                raise T2TError(f"{shard}: holds an example without {name}; is it a shard of text pairs?")
    return Pairs(
        *(Side(np.concatenate(ids[name]), np.cumsum(np.concatenate(lengths[name]))) for name in FEATURES)
    )
