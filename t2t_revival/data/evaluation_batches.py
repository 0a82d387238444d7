"""Batches of the examples of a split, on which a model is evaluated."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from t2t_revival.data.buckets import bucket_batch_sizes, fixed_width
from t2t_revival.data.examples import BLOCK, parse, read_blocks
from t2t_revival.data.records import SplitData
from t2t_revival.hparams.hparams import HParams

# {"inputs": int32 [n, source], "targets": int32 [n, target]}, labels and weights, float32, [n, target]
EvaluationBatch: TypeAlias = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def evaluation_batches(
    data: SplitData, hparams: HParams, *, replicas: int = 1, fixed_shapes: bool = False
) -> list[EvaluationBatch]:
    """Returns batches of every example once, the longest first, without truncation.

    Args:
        data: the split.
        hparams: `batch_size` and `reverse_target` are read.
        replicas: the number of rows of every batch is a multiple of this; all-PAD rows fill it up.
        fixed_shapes: pad both sides to the same power of two and fill up rows, so that there are few shapes,
            one for each width (XLA compiles each shape separately).

    Returns:
        Inputs, labels and weights, which are 1 at every non-pad target position.

    Raises:
        T2TError: a shard is missing or corrupt.
    """
    blocks = [block for shard in sorted(data.paths) for block in read_blocks(shard, BLOCK)]
    pairs = parse(blocks, data.swapped)
    source, target = pairs.inputs.lengths, pairs.targets.lengths
    longest = np.maximum(source, target)
    order = np.lexsort((source, target, longest))[::-1]
    batches: list[EvaluationBatch] = []
    begin = 0
    while begin < len(order):
        width = int(longest[order[begin]])
        width = fixed_width(width) if fixed_shapes else width
        most_rows = replicas * bucket_batch_sizes([width], hparams.batch_size)[0]
        members = order[begin : begin + most_rows]
        shape = (most_rows, width) if fixed_shapes else (-(-len(members) // replicas) * replicas, 0)
        inputs = pairs.inputs.padded(members, *shape)
        labels = pairs.targets.padded(members, *shape, backwards=hparams.reverse_target)
        batches.append(({"inputs": inputs, "targets": labels}, labels, (labels != 0).astype(np.float32)))
        begin += most_rows
    return batches
