"""Word alignments of a batch, as `guided_alignment_weight` learns them."""

from __future__ import annotations

import numpy as np

from t2t_revival.data.examples import Pairs, Side


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
