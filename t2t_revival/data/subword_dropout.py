"""Training pairs in another segmentation each epoch: BPE-dropout (Provilkova et al., 2020).

While a token is merged from characters, each merge that is possible at a step is dropped with the probability
`subword_dropout`. Where all of them are dropped, merging ends, and the token is in the parts made by then.
This is the paper's rule for each token by itself and in the order of its `Splits`: it needs ids alone, no
text, and what the paper would merge to other tokens instead stays in parts.

Random numbers are functions of seed, epoch, pair, side and token (splitmix64), not of what is read before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from t2t_revival.data.examples import BLOCK, Block, Pairs, Side
from t2t_revival.data.vocabulary.splits import Splits
from t2t_revival.hparams.hparams import HParams

SIDES = ("source", "target")


def pair_keys(blocks: Sequence[Block], shards: Sequence[Path], seed: int, epoch: int) -> np.ndarray:
    """Returns a random number for each of the n pairs in some blocks of `shards`: uint64 [n]."""
    start = np.random.SeedSequence([seed % 2**64, epoch]).generate_state(1, np.uint64)
    of_shard = dict(zip(shards, _random(start, np.arange(len(shards))), strict=True))
    return np.concatenate(
        [_random(of_shard[shard], first + np.arange(len(records))) for shard, records, first in blocks]
    )


def sample(pairs: Pairs, keys: np.ndarray, splits: Splits, hparams: HParams) -> Pairs:
    """Returns n pairs with the same text in another segmentation.

    A pair that would have more than `max_length` tokens on either side keeps its segmentation.

    Args:
        pairs: ids of the vocabulary.
        keys: the pairs' random numbers: uint64 [n].
        splits: of the vocabulary.
        hparams: `subword_dropout`, `subword_dropout_side` and `max_length` are read.
    """
    survival = _survival(splits, hparams.subword_dropout)
    blocks = [  # whose arrays fit into the cache of a core
        _sample_block(
            Pairs(*(_part(side, begin) for side in pairs)),
            keys[begin : begin + BLOCK],
            splits,
            survival,
            hparams,
        )
        for begin in range(0, len(keys), BLOCK)
    ]
    return Pairs(
        *(_side([s.ids for s in sides], [s.lengths for s in sides]) for sides in zip(*blocks, strict=True))
    )


def _part(side: Side, begin: int) -> Side:
    offsets = side.offsets[begin : begin + BLOCK + 1]
    return Side(side.ids[offsets[0] : offsets[-1]], offsets - offsets[0])


def _side(ids: Sequence[np.ndarray], lengths: Sequence[np.ndarray]) -> Side:
    return Side(np.concatenate(ids), np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths])))


def _sample_block(
    pairs: Pairs, keys: np.ndarray, splits: Splits, survival: np.ndarray, hparams: HParams
) -> Pairs:
    sampled = [
        _sample_side(side, _random(keys, number), splits, survival)
        if hparams.subword_dropout_side in ("both", name)
        else side
        for number, (name, side) in enumerate(zip(SIDES, pairs, strict=True))
    ]
    fits = np.max([side.lengths for side in sampled], axis=0) <= hparams.max_length
    return Pairs(*(_chosen(fits, new, side) for new, side in zip(sampled, pairs, strict=True)))


def _sample_side(side: Side, keys: np.ndarray, splits: Splits, survival: np.ndarray) -> Side:
    position = np.arange(len(side.ids)) - np.repeat(side.offsets[:-1], side.lengths)
    keys = _random(np.repeat(keys, side.lengths), position)
    ids, counts = _split(side.ids, (keys >> np.uint64(11)) * 2.0**-53, splits, survival)
    return _side([ids], [np.add.reduceat(counts, side.offsets[:-1])])


def _split(
    ids: np.ndarray, uniform: np.ndarray, splits: Splits, survival: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Splits m tokens by m uniform random numbers; `survival` is as in `_survival`.

    Returns:
        All resulting tokens, int32 [total], and the number that each of the m is split into, int64 [m].
    """
    undone = uniform >= survival[ids, -1]
    made = (uniform[undone, None] < survival[ids[undone]]).sum(axis=1)
    end = splits.steps[ids[undone], made]  # order of the first merge that is not made: [undone]
    levels = [(ids, undone)]
    while undone.any():
        ids, end = splits.parts[ids[undone]].ravel(), np.repeat(end, 2)
        undone = splits.order[ids] >= end
        end = end[undone]
        levels.append((ids, undone))
    tokens, counts = ids, np.ones(len(ids), np.int64)
    for ids, undone in reversed(levels[:-1]):
        of_undone, counts = counts.reshape(-1, 2).sum(axis=1), np.ones(len(ids), np.int64)
        counts[undone] = of_undone
        parts, tokens = tokens, np.repeat(ids, counts)
        tokens[np.repeat(undone, counts)] = parts
    return tokens, counts


def _survival(splits: Splits, dropout: float) -> np.ndarray:
    """Returns the probability that merging goes beyond each step of a token: float64 [tokens, steps]."""
    return np.cumprod(1 - dropout**splits.choices, axis=1)


def _chosen(of_new: np.ndarray, new: Side, old: Side) -> Side:
    """Returns the examples of `new` where `of_new`, bool [n], is true, and those of `old` elsewhere."""
    if of_new.all():
        return new
    lengths = np.where(of_new, new.lengths, old.lengths)
    ids, from_new = np.empty(lengths.sum(), np.int32), np.repeat(of_new, lengths)
    ids[from_new] = new.ids[np.repeat(of_new, new.lengths)]
    ids[~from_new] = old.ids[np.repeat(~of_new, old.lengths)]
    return _side([ids], [lengths])


def _random(keys: np.ndarray, number: np.ndarray | int) -> np.ndarray:
    """Returns the output with this number, from 0, of the splitmix64 generators with the states `keys`."""
    z = keys + (np.atleast_1d(number).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
