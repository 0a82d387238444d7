"""Examples of shards: serialised in blocks and chunks, and parsed into flat arrays of ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_revival.data.example_parser import Side, floats, int_lists
from t2t_revival.data.records import READ_BUFFER, SplitData, read_shard
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    import tensorflow as tf

BLOCK = 1024  # records read and parsed at once
SIDES = ("inputs", "targets")


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
    """Parses the examples of some blocks; raises T2TError for other records, with the name of their shard.

    `swapped` is that of their `SplitData`.
    """
    parsed = []
    for shard, records, *_ in blocks:
        try:
            sides = int_lists(records, *SIDES)
        except ValueError as error:
            raise T2TError(
                f"{shard}: not a shard of examples with lists of ids; make it again with t2t-datagen"
            ) from error
        for name, side in zip(SIDES, sides, strict=True):
            if not np.diff(side.offsets).all():
                raise T2TError(f"{shard}: an example has no {name}; is it a shard of text pairs?")
        parsed.append(sides)
    inputs, targets = map(Side.joined, zip(*parsed, strict=True))
    return Pairs(targets, inputs) if swapped else Pairs(inputs, targets)


def parse_weights(blocks: list[Block]) -> np.ndarray:
    """Returns the weights of the n examples of some blocks, float32 [n]; those without one have 1."""
    return np.concatenate([floats(block.records, "weight", 1.0) for block in blocks])


def parse_alignments(blocks: list[Block]) -> Side:
    """Returns the word alignments of the examples of some blocks; see `token_links`; empty without one."""
    return Side.joined(int_lists(block.records, "alignment")[0] for block in blocks)


def alignment_shares(
    alignments: Side, pairs: Pairs, members: np.ndarray, shape: tuple[int, int, int], swapped: bool
) -> np.ndarray:
    """Returns the shares of source tokens in each target token of a batch.

    Args:
        alignments: links of tokens, as in shards; see `token_links`.
        pairs: the examples, with their sides swapped already where they are.
        members: indices of the batch's examples.
        shape: rows, target and source positions of the batch.
        swapped: whether sides are swapped. What was linked with the end of its source has no share then.

    Returns:
        float32 [rows, target, source]: the linked tokens of a target token have equal shares with a sum of 1;
        all are 0 for one without links.
    """
    shares = np.zeros(shape, np.float32)
    for row, member in enumerate(members.tolist()):
        links = alignments.ids[alignments.offsets[member] : alignments.offsets[member + 1]].reshape(-1, 2)
        if swapped:
            end = pairs.targets.offsets[member + 1] - pairs.targets.offsets[member] - 1
            links = links[links[:, 1] != end][:, ::-1]
        shares[row, links[:, 0], links[:, 1]] = 1.0
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
        T2TError: a shard is missing, corrupt or not a shard of such examples; names it.
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
