"""Examples of shards: serialised in blocks and chunks, and parsed into flat arrays of ids.

They are as `records` has them, and read without TensorFlow: each step of the parser reads the same
field of many at once.

`Mixing` puts them into chunks. An epoch of one source has all of its examples in a new order: blocks of up to
16 shards in turn. Its chunks end with a block. A mixture is an endless stream. After d examples, corpus i of
weight w_i has contributed the first floor(d * w_i / sum(w)) of its own stream: all of its examples, in a new
order each time. Any place of the mixture is so a pure function of seed, corpora and weights. Its chunks are
exact.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival.data.records import READ_BUFFER, CorpusShards, SplitData, read_shard

if TYPE_CHECKING:
    import tensorflow as tf


BLOCK = 1024  # records read and parsed at once
SIDES = ("inputs", "targets")
LAST_BYTE = 0x80  # a varint's bytes have this bit, but for its last
VARINT_BYTES = 10  # at most
OPEN_SHARDS = 16  # shards read in parallel


class Side(NamedTuple):
    """One side of n examples: concatenated ids int32 [total], and their offsets int64 [n + 1]."""

    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def joined(cls, sides: Iterable[Side]) -> Side:
        """Joins the same side of several groups of examples."""
        groups = list(sides)
        lengths = [np.zeros(1, np.int64), *(side.lengths for side in groups)]
        return cls(np.concatenate([side.ids for side in groups]), np.cumsum(np.concatenate(lengths)))

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of all examples, int64 [n]."""
        return np.diff(self.offsets)

    def tokens(self, members: np.ndarray) -> int:
        """Returns the total number of ids of some of the examples."""
        return int((self.offsets[members + 1] - self.offsets[members]).sum())

    def padded(self, members: np.ndarray, rows: int, width: int) -> np.ndarray:
        """Pads examples with 0 to int32 [rows, width]; width 0 uses that of the longest member."""
        begins, ends = self.offsets[members, None], self.offsets[members + 1, None]  # [n, 1]
        width = width or int((ends - begins).max())
        at = begins + np.arange(width)  # [n, width]
        batch = np.zeros((rows, width), np.int32)
        batch[: len(members)] = np.where(at < ends, self.ids.take(at, mode="clip"), 0)
        return batch

    def packed(
        self, members: np.ndarray, places: np.ndarray, numbers: np.ndarray, shape: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Puts examples at their places in a batch, whose positions are counted through all rows.

        Returns:
            The ids, and the number of the example at each position, int32 of the shape, 0 elsewhere.
        """
        begins, lengths = self.offsets[members], self.lengths[members]
        at = _ranges(places, lengths)
        batch, segments = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        batch.reshape(-1)[at] = self.ids[_ranges(begins, lengths)]
        segments.reshape(-1)[at] = np.repeat(numbers, lengths)
        return batch, segments


def int_lists(examples: Sequence[bytes], *names: str) -> list[Side]:
    """Reads int64 lists, of numbers below 2^31 that are not negative, as int32.

    Args:
        examples: serialised.
        names: of the features; one that an example lacks is empty there.
    """
    content, sections = _find(examples, names)
    lists = []
    for begins, sizes in sections:
        packed = content[_ranges(begins, sizes)]
        ends = packed < LAST_BYTE  # of each varint, its last byte
        offsets = np.concatenate([[0], np.cumsum(ends)])[np.concatenate([[0], np.cumsum(sizes)])]
        first = np.concatenate([[0], np.flatnonzero(ends) + 1])[:-1]
        values, _ = _varints(np.append(packed, np.zeros(VARINT_BYTES, np.uint8)), first)
        lists.append(Side(values.astype(np.int32), offsets))
    return lists


def floats(examples: Sequence[bytes], name: str, default: float) -> np.ndarray:
    """Reads a float list of one number as float32 [n], `default` where an example lacks it."""
    content, ((begins, sizes),) = _find(examples, (name,))
    numbers = np.full(len(examples), default, np.float32)
    numbers[sizes > 0] = np.frombuffer(content[_ranges(begins, sizes)].tobytes(), "<f4")
    return numbers


def _find(
    examples: Sequence[bytes], names: Sequence[str]
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Finds the packed values of features; records whose checksums are right are those of `encode_example`.

    Returns:
        All examples as uint8, and for each name the first byte of the values of each example, and their size
        in bytes, int64 [n].
    """
    content = np.frombuffer(b"".join(examples) + bytes(2 * VARINT_BYTES), np.uint8)
    found = [(np.zeros(len(examples), np.int64), np.zeros(len(examples), np.int64)) for _ in names]
    lengths = np.fromiter(map(len, examples), np.int64, len(examples))
    at, ends = _enter(content, np.cumsum(lengths) - lengths)
    rest = np.flatnonzero(at < ends)  # examples with a feature that is not yet read
    while rest.size:
        entries, entry_ends = _enter(content, at[rest])
        keys, key_ends = _enter(content, entries)
        features, feature_ends = _enter(content, key_ends)
        for name, (begins, sizes) in zip(names, found, strict=True):
            own = np.flatnonzero(_are(content, keys, key_ends, name.encode()) & (features < feature_ends))
            lists, list_ends = _enter(content, features[own])
            full = np.flatnonzero(lists < list_ends)
            values, value_ends = _enter(content, lists[full])
            members = rest[own[full]]
            begins[members], sizes[members] = values, value_ends - values
        at[rest] = entry_ends
        rest = rest[at[rest] < ends[rest]]
    return content, found


def _enter(content: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reads the header of a length-delimited field of each message; returns its first byte and its end."""
    sizes, begins = _varints(content, at + 1)
    return begins, begins + sizes


def _varints(content: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reads a varint at each place, int64; returns the numbers and the places behind them."""
    first = content[at]
    values, ends = (first & 0x7F).astype(np.int64), at + 1
    more = np.flatnonzero(first >= LAST_BYTE)
    for shift in range(7, 7 * VARINT_BYTES, 7):
        if not more.size:
            break
        following = content[ends[more]]
        values[more] |= (following & 0x7F).astype(np.int64) << shift
        ends[more] += 1
        more = more[following >= LAST_BYTE]
    return values, ends


def _are(content: np.ndarray, begins: np.ndarray, ends: np.ndarray, name: bytes) -> np.ndarray:
    """Returns for each key whether it is `name`, bool [n]."""
    equal = ends - begins == len(name)
    places = begins[equal, None] + np.arange(len(name))
    equal[equal] = (content[places] == np.frombuffer(name, np.uint8)).all(axis=1)
    return equal


def _ranges(begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Returns the places of `sizes` bytes from each of `begins` on, one after another."""
    return np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())


class Block(NamedTuple):
    """Serialised examples of a shard, in their order.

    Attributes:
        shard: their shard.
        records: the examples.
        first: the number of the first in the shard.
        epoch: how often the shard was read before, in training.
    """

    shard: Path
    records: list[bytes]
    first: int
    epoch: int = 0


class Pairs(NamedTuple):
    """Both sides of n examples, in the order in which they were read."""

    inputs: Side
    targets: Side


def read_blocks(shard: Path, size: int, epoch: int = 0) -> Iterator[Block]:
    """Yields the examples of a shard in blocks of `size`; the last may have fewer. Errors: `read_shard`."""
    blocks = enumerate(read_shard(shard, size))
    return (Block(shard, records, size * number, epoch) for number, records in blocks)


def parse(blocks: list[Block], swapped: bool = False) -> Pairs:
    """Parses the examples of some blocks; `swapped` is that of their `SplitData`."""
    parsed = (int_lists(block.records, *SIDES) for block in blocks)
    inputs, targets = map(Side.joined, zip(*parsed, strict=True))
    return Pairs(targets, inputs) if swapped else Pairs(inputs, targets)


def alignment_shares(
    alignments: Side,
    pairs: Pairs,
    members: np.ndarray,
    shape: tuple[int, int, int],
    swapped: bool,
    places: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Returns the shares of source tokens in each target token of a batch.

    Args:
        alignments: links of tokens, as in shards; see `token_links`.
        pairs: the examples, with their sides swapped already where they are.
        members: indices of the batch's examples.
        shape: rows, target and source positions of the batch.
        swapped: whether sides are swapped. What was linked with the end of its source has no share then.
        places: the members' rows, and where their targets and sources begin there; `None` is a row for each.

    Returns:
        float32 [rows, target, source]: the linked tokens of a target token have equal shares with a sum of 1;
        all are 0 for one without links.
    """
    shares = np.zeros(shape, np.float32)
    nowhere = np.zeros(len(members), int)
    rows, targets, sources = places or (np.arange(len(members)), nowhere, nowhere)
    for member, row, target, source in zip(members.tolist(), rows, targets, sources, strict=True):
        links = alignments.ids[alignments.offsets[member] : alignments.offsets[member + 1]].reshape(-1, 2)
        if swapped:
            end = pairs.targets.offsets[member + 1] - pairs.targets.offsets[member] - 1
            links = links[links[:, 1] != end][:, ::-1]
        shares[row, target + links[:, 0], source + links[:, 1]] = 1.0
    return shares / np.maximum(shares.sum(-1, keepdims=True), 1.0)


def read_pairs(data: SplitData, max_pairs: int) -> Pairs:
    """Reads at most `max_pairs`: the first pairs of each shard, evenly many, but at least one of each.

    Errors are those of `read`.
    """
    per_shard = max(1, max_pairs // len(data.paths))
    blocks = [
        block._replace(records=block.records[: per_shard - start])
        for shard in data.paths
        for start, block in zip(range(0, per_shard, BLOCK), read_blocks(shard, BLOCK), strict=False)
    ]
    return parse(blocks, data.swapped)


def read(data: SplitData) -> Iterator[tuple[list[int], list[int]]]:
    """Yields the ids (inputs, targets) of all examples, in file order.

    Raises:
        T2TError: a shard is missing or corrupt; names it.
    """
    for shard in data.paths:
        for block in read_blocks(shard, BLOCK):
            pairs = parse([block], data.swapped)
            inputs, targets = (np.split(side.ids, side.offsets[1:-1]) for side in pairs)
            for source, target in zip(inputs, targets, strict=True):
                yield source.tolist(), target.tolist()


def dataset(data: SplitData) -> tf.data.Dataset:
    """Returns the examples in file order: {"inputs", "targets"}, each int32 [length].

    They are read by TensorFlow, so that any pipeline can be built on the dataset; a corrupt shard raises
    `tf.errors.DataLossError` during iteration.
    """
    import tensorflow as tf

    sides = SIDES[::-1] if data.swapped else SIDES
    features = {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in SIDES}

    def ids(serialised: tf.Tensor) -> dict[str, tf.Tensor]:
        example = tf.io.parse_single_example(serialised, features)
        return {name: tf.cast(example[side], tf.int32) for name, side in zip(SIDES, sides, strict=True)}

    records = tf.data.TFRecordDataset([*map(str, data.paths)], buffer_size=READ_BUFFER)
    return records.map(ids, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)


class Mixing:
    """Chunks of examples; an epoch is as many examples as all corpora have together.

    Args:
        corpora: at least one has a weight.
        seed: of the order.
        chunk: examples in a chunk, of a mixture at most, of one source at least; an epoch's last one may have
            fewer.
    """

    def __init__(self, corpora: Sequence[CorpusShards], seed: int, chunk: int) -> None:
        self._corpora = [corpus for corpus in corpora if corpus.weight]
        self._seed, self._chunk = seed, chunk
        self._block = max(1, min(BLOCK, chunk // OPEN_SHARDS))
        self._epoch_size = sum(corpus.examples for corpus in self._corpora)
        total = sum(Fraction(corpus.weight) for corpus in self._corpora)
        self._shares = [Fraction(corpus.weight) / total for corpus in self._corpora]
        self._streams: list[_Stream] = []

    def chunks(self, epoch: int, first: int) -> Iterator[list[Block]]:
        """Yields the chunks of an epoch from number `first` on; errors are those of `records.read_shard`."""
        if not self._corpora[0].name:
            blocks = _shuffled(self._corpora[0], self._seed, self._block, epoch)
            yield from islice(_whole_blocks(blocks, self._chunk), first, None)
            return
        begin, end = epoch * self._epoch_size, (epoch + 1) * self._epoch_size
        for start in range(begin + first * self._chunk, end, self._chunk):
            yield self._read(start, min(start + self._chunk, end))

    def _read(self, start: int, stop: int) -> list[Block]:
        """Reads the examples number `start` up to `stop` of the mixture."""
        begins, ends = ([math.floor(number * share) for share in self._shares] for number in (start, stop))
        if begins != [stream.position for stream in self._streams]:
            self._streams = [
                _Stream(corpus, self._seed, self._block, begin)
                for corpus, begin in zip(self._corpora, begins, strict=True)
            ]
        parts = (stream.take_until(end) for stream, end in zip(self._streams, ends, strict=True))
        return list(chain.from_iterable(parts))


class _Stream:
    """The examples of a corpus, again and again, in an order of its own each time.

    Attributes:
        position: number of the next example.
    """

    def __init__(self, corpus: CorpusShards, seed: int, block: int, position: int) -> None:
        epoch = position // corpus.examples
        epochs = (_shuffled(corpus, seed, block, number) for number in count(epoch))
        self._blocks = chain.from_iterable(epochs)
        self._rest: Block | None = None
        self.position = epoch * corpus.examples
        for _ in self.take_until(position):
            pass

    def take_until(self, end: int) -> Iterator[Block]:
        """Yields blocks of the next examples, until that number `end` is the next one."""
        while left := end - self.position:
            block = self._rest or next(self._blocks)
            head, tail = block.records[:left], block.records[left:]
            self._rest = block._replace(records=tail, first=block.first + left) if tail else None
            self.position += len(head)
            yield block._replace(records=head)


def _shuffled(corpus: CorpusShards, seed: int, block: int, epoch: int) -> Iterator[Block]:
    """Yields the examples of a corpus in blocks of its shards, in the order of an epoch."""
    key = [zlib.crc32(corpus.name.encode())] if corpus.name else []  # so that others do not change the order
    paths = sorted(corpus.paths)
    order = np.random.default_rng([seed % 2**64, *key, epoch]).permutation(len(paths))
    return _interleaved([paths[index] for index in order], block, epoch)


def _interleaved(shards: list[Path], block: int, epoch: int) -> Iterator[Block]:
    """Yields blocks of up to 16 open shards in turn; the next shard is opened when one ends."""
    waiting = deque(shards)
    reading: deque[Iterator[Block]] = deque()
    while waiting or reading:
        while waiting and len(reading) < OPEN_SHARDS:
            reading.append(read_blocks(waiting.popleft(), block, epoch))
        reader = reading.popleft()
        following = next(reader, None)
        if following is not None:
            reading.append(reader)
            yield following


def _whole_blocks(blocks: Iterable[Block], size: int) -> Iterator[list[Block]]:
    """Groups blocks into chunks of at least `size` records; the last chunk may have fewer."""
    chunk: list[Block] = []
    count = 0
    for block in blocks:
        chunk.append(block)
        count += len(block.records)
        if count >= size:
            yield chunk
            chunk, count = [], 0
    if chunk:
        yield chunk
