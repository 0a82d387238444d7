"""Chunks of training examples from several corpora by weight.

A mixture is an endless stream. Of its first d examples, a corpus of weight w among weights of the sum W gives
the first d * w / W, rounded down, of its own stream: all of its examples, in a new order each time. Any place
of the mixture is so a pure function of seed, corpora and weights.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, count

import numpy as np

from t2t_revival.data.examples import BLOCK, OPEN_SHARDS, Block, interleave
from t2t_revival.data.records import CorpusShards


def weights(corpora: Sequence[CorpusShards]) -> str:
    """Returns names and weights of a mixture's corpora, "NAME:WEIGHT,NAME:WEIGHT"; "" for one source."""
    return ",".join(f"{corpus.name}:{corpus.weight:.15g}" for corpus in corpora if corpus.name)


class Mixing:
    """Chunks of a mixture's examples; an epoch is as many examples as all corpora have together.

    Args:
        corpora: at least one has a weight.
        seed: of the order.
        chunk: examples in a chunk, at most; an epoch's last one may have fewer.
    """

    def __init__(self, corpora: Sequence[CorpusShards], seed: int, chunk: int) -> None:
        self._corpora = [corpus for corpus in corpora if corpus.weight]
        self._seed, self._chunk = seed, chunk
        self._epoch_size = sum(corpus.examples for corpus in self._corpora)
        total = sum(Fraction(corpus.weight) for corpus in self._corpora)
        self._shares = [Fraction(corpus.weight) / total for corpus in self._corpora]
        self._streams: list[_Stream] = []

    def chunks(self, epoch: int, first: int) -> Iterator[list[Block]]:
        """Yields the chunks of an epoch from number `first` on; errors are those of `records.read_shard`."""
        begin, end = epoch * self._epoch_size, (epoch + 1) * self._epoch_size
        for start in range(begin + first * self._chunk, end, self._chunk):
            yield self._read(start, min(start + self._chunk, end))

    def _read(self, start: int, stop: int) -> list[Block]:
        """Reads the examples number `start` up to `stop` of the mixture."""
        begins, ends = ([math.floor(number * share) for share in self._shares] for number in (start, stop))
        if begins != [stream.position for stream in self._streams]:
            size = max(1, min(BLOCK, self._chunk // OPEN_SHARDS))
            self._streams = [
                _Stream(corpus, self._seed, size, begin)
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
        self._corpus, self._seed, self._block = corpus, seed, block
        epoch = position // corpus.examples
        self._blocks = self._read_from(epoch)
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

    def _read_from(self, epoch: int) -> Iterator[Block]:
        key = zlib.crc32(self._corpus.name.encode())  # so that other corpora do not change the order
        for number in count(epoch):
            generator = np.random.default_rng([self._seed % 2**64, key, number])
            order = generator.permutation(len(self._corpus.paths))
            yield from interleave([self._corpus.paths[index] for index in order], self._block, number)
