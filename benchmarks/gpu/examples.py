"""Batches of random ids in few shapes, since each shape is compiled."""

from __future__ import annotations

import numpy as np
from peers.batches import Batch

from t2t_revival import T2TError
from t2t_revival.data.batching import bucket_batch_sizes, bucket_boundaries

FIRST_TOKEN = 2  # 0 is padding, 1 the end
BATCHES = 16  # of mixed lengths, which are repeated
EQUAL_BATCHES = 4  # of full sentences
BUCKET_STEP = 2.0  # T2T's 1.1 would compile some 30 shapes
BUCKETS = 4
TYPICAL, SPREAD = 0.4, 0.5  # log-normal: median as a share of the longest, standard deviation
EXPANSION = 0.2  # a source is shorter or longer than its target by up to this share


def constant(tokens: int, length: int, vocab_size: int, seed: int = 1) -> list[Batch]:
    """Returns batches of full sentences: no padding, one shape.

    Args:
        tokens: maximum target tokens of a batch.
        length: of each sentence.
        vocab_size: upper bound of the ids.
        seed: of the ids.

    Raises:
        T2TError: `tokens` is less than a sentence.
    """
    _check(tokens, length)
    random = np.random.default_rng(seed)
    lengths = np.full(tokens // length, length)
    return [_batch(lengths, lengths, length, vocab_size, random) for _ in range(EQUAL_BATCHES)]


def mixed(tokens: int, longest: int, vocab_size: int, seed: int = 1) -> list[Batch]:
    """Returns batches of log-normal lengths in a few buckets, at least one batch of each.

    Args:
        tokens: maximum positions of a batch, padding included.
        longest: tokens of the longest sentence.
        vocab_size: upper bound of the ids.
        seed: of lengths, ids and order.

    Raises:
        T2TError: `tokens` is less than a sentence.
    """
    _check(tokens, longest)
    random = np.random.default_rng(seed)
    bounds = bucket_boundaries(longest, max(2, longest // 2 ** (BUCKETS - 1)), BUCKET_STEP)
    rows = bucket_batch_sizes(bounds, tokens)
    targets = _lengths(np.exp(random.normal(np.log(longest * TYPICAL), SPREAD, 2**16)), longest)
    sources = _lengths(targets * random.uniform(1 - EXPANSION, 1 + EXPANSION, len(targets)), longest)
    buckets = np.searchsorted(bounds, np.maximum(sources, targets))
    # As many batches of a bucket as its share of the positions.
    shares = np.bincount(buckets, minlength=len(bounds)) * bounds
    counts = np.maximum(1, np.rint(BATCHES * shares / shares.sum()).astype(int))
    batches = []
    for bucket, (bound, size, count) in enumerate(zip(bounds, rows, counts, strict=True)):
        members = np.flatnonzero(buckets == bucket)
        for _ in range(count if len(members) else 0):
            drawn = random.choice(members, size)
            batches.append(_batch(sources[drawn], targets[drawn], bound, vocab_size, random))
    return [batches[index] for index in random.permutation(len(batches))]


def _check(tokens: int, length: int) -> None:
    if tokens < length:
        raise T2TError(f"micro-batches of {tokens} tokens are shorter than a sentence of {length}")


def _lengths(wanted: np.ndarray, longest: int) -> np.ndarray:
    return np.clip(wanted.astype(int), 2, longest)


def _batch(
    sources: np.ndarray, targets: np.ndarray, width: int, vocab_size: int, random: np.random.Generator
) -> Batch:
    return Batch(*(_ids(lengths, width, vocab_size, random) for lengths in (sources, targets)))


def _ids(lengths: np.ndarray, width: int, vocab_size: int, random: np.random.Generator) -> np.ndarray:
    ids = random.integers(FIRST_TOKEN, vocab_size, (len(lengths), width))
    positions = np.arange(width)
    ids[positions == lengths[:, None] - 1] = 1
    return (ids * (positions < lengths[:, None])).astype(np.int32)
