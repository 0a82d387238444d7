"""Training pairs in another segmentation each epoch: BPE-dropout (Provilkova et al., 2020).

While a token is merged from characters, each merge that is possible at a step is dropped with the probability
`subword_dropout`. Where all of them are dropped, merging ends, and the token is in the parts made by then.
This is the paper's rule for each token by itself and in the order of its `Splits`: it needs ids alone, no
text, and what the paper would merge to other tokens instead stays in parts.

Random numbers are functions of seed, epoch, pair, side and token (splitmix64), not of what is read before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.data.examples import BLOCK, Block, Pairs, Side
from t2t_revival.data.vocabulary.text_encoder import Splits
from t2t_revival.hparams.hparams import HParams


def pair_keys(blocks: Sequence[Block], shards: Sequence[Path], seed: int) -> np.ndarray:
    """Returns a random number for each of the n pairs in some blocks of `shards`: uint64 [n]."""

    @cache
    def of_shards(epoch: int) -> dict[Path, Any]:
        start = np.random.SeedSequence([seed % 2**64, epoch]).generate_state(1, np.uint64)
        return dict(zip(shards, _random(start, np.arange(len(shards))), strict=True))

    return np.concatenate(
        [
            _random(of_shards(block.epoch)[block.shard], block.first + np.arange(len(block.records)))
            for block in blocks
        ]
    )


def sample(pairs: Pairs, keys: np.ndarray, splits: tuple[Splits, Splits], hparams: HParams) -> Pairs:
    """Returns n pairs with the same text in another segmentation.

    A pair that would have more than `max_length` tokens on either side keeps its segmentation.

    Args:
        pairs: ids of the vocabularies.
        keys: the pairs' random numbers: uint64 [n].
        splits: of the vocabularies of inputs and targets.
        hparams: `subword_dropout`, `subword_dropout_side` and `max_length` are read.
    """
    survival = [_survival(splits[0], hparams)] * 2
    if splits[1] is not splits[0]:
        survival[1] = _survival(splits[1], hparams)
    blocks = [  # whose arrays fit into the cache of a core
        _sample_block(Pairs(*(_part(side, begin) for side in pairs)), keys[begin:], splits, survival, hparams)
        for begin in range(0, len(keys), BLOCK)
    ]
    return Pairs(*map(Side.joined, zip(*blocks, strict=True)))


def _survival(splits: Splits, hparams: HParams) -> np.ndarray:
    """Returns each token's probability to be merged at each step, float64 [tokens, steps]."""
    return np.cumprod(1 - hparams.subword_dropout**splits.choices, axis=1)


def _part(side: Side, begin: int) -> Side:
    offsets = side.offsets[begin : begin + BLOCK + 1]
    return Side(side.ids[offsets[0] : offsets[-1]], offsets - offsets[0])


def _sample_block(
    pairs: Pairs,
    keys: np.ndarray,
    splits: tuple[Splits, Splits],
    survival: Sequence[np.ndarray],
    hparams: HParams,
) -> Pairs:
    keys = keys[: len(pairs.inputs.lengths)]
    chosen = np.ones(len(keys), bool)  # pairs that are short enough in another segmentation
    while True:
        sampled = Pairs(
            *(
                _sample_side(side, _random(keys, number), chosen, splits[number], survival[number])
                if hparams.subword_dropout_side in (name, "both")
                else side
                for number, (name, side) in enumerate(zip(("source", "target"), pairs, strict=True))
            )
        )
        longest = np.maximum(sampled.inputs.lengths, sampled.targets.lengths)
        too_long = chosen & (longest > hparams.max_length)
        if not too_long.any():
            return sampled
        chosen &= ~too_long


def _sample_side(
    side: Side, keys: np.ndarray, chosen: np.ndarray, splits: Splits, survival: np.ndarray
) -> Side:
    """Splits the tokens of some examples; `keys` uint64 and `chosen` bool, both [n], are the examples'."""
    position = np.arange(len(side.ids)) - np.repeat(side.offsets[:-1], side.lengths)
    uniform = (_random(np.repeat(keys, side.lengths), position) >> np.uint64(11)) * 2.0**-53  # below 1
    uniform = np.where(np.repeat(chosen, side.lengths), uniform, -1)
    undone = uniform >= survival[side.ids, -1]
    made = (uniform[undone, None] < survival[side.ids[undone]]).sum(axis=1)
    ids, counts = _split(side.ids, undone, splits.steps[side.ids[undone], made], splits)
    return Side(ids, np.append(0, np.cumsum(counts))[side.offsets])


def _split(
    ids: np.ndarray, undone: np.ndarray, end: np.ndarray, splits: Splits
) -> tuple[np.ndarray, np.ndarray]:
    """Splits some of m nodes, and their parts, as far as their merges come at or after a step.

    Args:
        ids: the nodes: int32 [m].
        undone: whether a node is split: bool [m].
        end: the step's order, for each of those that are: float64 [undone].
        splits: of the vocabulary.

    Returns:
        The resulting tokens, int32 [total], and how many each node is split into, int64 [m].
    """
    counts = np.ones(len(ids), np.int64)
    if not undone.any():
        return ids, counts
    parts, end = splits.parts[ids[undone]].ravel(), np.repeat(end, 2)
    again = splits.order[parts] >= end
    parts, of_part = _split(parts, again, end[again], splits)
    counts[undone] = of_part.reshape(-1, 2).sum(axis=1)
    tokens = np.repeat(ids, counts)
    tokens[np.repeat(undone, counts)] = parts
    return tokens, counts


def _random(keys: np.ndarray, number: np.ndarray | int) -> np.ndarray:
    """Returns the output with this number, from 0, of the splitmix64 generators with the states `keys`."""
    z = keys + (np.atleast_1d(number).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
