"""Chunks of training examples: of one source, or of several corpora by weight.

An epoch of one source has all of its examples in a new order: blocks of up to 16 shards in turn. Its chunks
end with a block.

A mixture is an endless stream. After d examples, corpus i of weight w_i has contributed the first
floor(d * w_i / sum(w)) of its own stream: all of its examples, in a new order each time. Any place of the
mixture is so a pure function of seed, corpora and weights. Its chunks are exact.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, count, islice
from pathlib import Path

import numpy as np

from t2t_revival.data.examples import BLOCK, Block, read_blocks
from t2t_revival.data.records import CorpusShards

OPEN_SHARDS = 16  # shards read in parallel


def weights(corpora: Sequence[CorpusShards]) -> str:
    """Returns names and weights of a mixture's corpora, "NAME:WEIGHT,NAME:WEIGHT"; "" for one source."""
    return ",".join(f"{corpus.name}:{corpus.weight:.15g}" for corpus in corpora if corpus.name)


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
