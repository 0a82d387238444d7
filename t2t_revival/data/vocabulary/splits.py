"""Splits of a vocabulary's tokens into smaller ones, for `subword_dropout`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

LONGEST = 64  # characters of a token that is split: merging takes the square of their number


class Splits(NamedTuple):
    """The merges that make each token from characters: binary trees of nodes, which are tokens.

    The nodes after the last token join parts of a token that no two tokens make.

    Attributes:
        parts: the two nodes that make each node, 0 for one that is not split: int32 [nodes, 2].
        order: the place of each node's merge among all, -inf for one that is not split: float64 [nodes].
        steps: the orders of the merges in each token's tree, ascending, then inf: float64 [tokens, steps].
        choices: the merges that are possible at each of these steps, then inf: float64 [tokens, steps].
    """

    parts: np.ndarray
    order: np.ndarray
    steps: np.ndarray
    choices: np.ndarray


def merge_splits(pieces: Sequence[str], ranks: Sequence[float]) -> Splits:
    """Returns the splits of tokens by byte-pair encoding's rule: the pair of the lowest rank is merged first.

    A token of more than 64 characters, or with a character that is no token, is not split.

    Args:
        pieces: the text of each token; "" if it is neither split nor a part of another.
        ranks: of each token; the earlier merge, or the more frequent token, has the lower one.
    """
    import numpy as np

    ids = {piece: token for token, piece in enumerate(pieces) if piece}
    by_piece = {piece: ranks[token] for piece, token in ids.items()}
    parts, order = [(0, 0)] * len(pieces), [-math.inf] * len(pieces)
    merges: list[list[tuple[float, float]]] = [[] for _ in pieces]  # of each tree: (possible after, order)
    for piece in sorted((piece for piece in ids if len(piece) <= LONGEST), key=len):
        token, nodes = ids[piece], [ids.get(part, 0) for part in _merged(piece, by_piece)]
        if len(nodes) < 2 or not all(nodes):
            continue
        ready = max(order[node] for node in nodes)
        order[token] = max(ranks[token], ready + 1)
        merges[token] = [*(merge for node in nodes for merge in merges[node]), (ready, order[token])]
        for other in nodes[1:-1]:
            parts.append((nodes[0], other))
            order.append(order[token])
            nodes[0] = len(parts) - 1
        parts[token] = (nodes[0], nodes[-1])
    return Splits(np.array(parts, np.int32), np.array(order), *_steps(merges))


def _merged(piece: str, ranks: Mapping[str, float]) -> list[str]:
    """Merges the characters of a piece to two parts, or to more if nothing else can be merged."""
    bounds = list(range(len(piece) + 1))
    while len(bounds) > 3:
        rank, at = min(
            (ranks.get(piece[begin:end], math.inf), at)
            for at, (begin, end) in enumerate(zip(bounds, bounds[2:], strict=False))
        )
        if rank == math.inf:
            break
        del bounds[at + 1]
    return [piece[begin:end] for begin, end in pairwise(bounds)]


def _steps(merges: Sequence[Sequence[tuple[float, float]]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns `steps` and `choices` of `Splits`."""
    import numpy as np

    orders = [sorted({order for _, order in tree}) for tree in merges]
    table = np.full((2, len(merges), max(1, *map(len, orders))), math.inf)
    for token, tree in enumerate(merges):
        for step, at in enumerate(orders[token]):
            table[:, token, step] = at, sum(ready < at <= order for ready, order in tree)
    return table[0], table[1]
