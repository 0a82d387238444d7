"""`TextEncoder`, the base of all vocabularies (T2T's); their tags, and their `Splits`, for `subword_dropout`.

Tags are texts such as <2de> before a source, which tell a model the target's language or a corpus's kind.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_revival.errors import T2TError
from t2t_revival.utils.made_of import fingerprint
from t2t_revival.utils.texts import is_blank

if TYPE_CHECKING:
    import numpy as np


PAD, EOS = 0, 1
SUBWORDS = ".subwords"  # extension of T2T's vocabulary files
MARIAN = ".marian"  # and of Marian's
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


class TextEncoder(abc.ABC):
    """Text to ids and back, in Python and in the graph; PAD is 0 and EOS 1.

    Args:
        path: the vocabulary file.
        content: the bytes of that file. `None` reads them.

    Attributes:
        path: the vocabulary file.
        content: the bytes of that file.
        unknown: the id of text outside the vocabulary; PAD where there is none.
        banned: the id beside PAD that no output has: `unknown`, where data has it; else PAD.
        first: the id that all outputs begin with, which tells their language; PAD where there is none.

    Raises:
        T2TError: the file is missing.
    """

    unknown = banned = first = PAD

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        self.path, self._given_content = Path(path), content
        try:
            self.content = self.path.read_bytes() if content is None else content
        except FileNotFoundError as error:
            raise T2TError(
                f"{path}: no such vocabulary; if data has lost it, put a copy back, or make the data again "
                "by t2t-datagen with --overwrite"
            ) from error

    def __reduce__(self) -> tuple[type[TextEncoder], tuple[Any, ...]]:
        return type(self), (self.path, self._given_content)

    @property
    def of_targets(self) -> TextEncoder:
        """The same ids for targets; another object where sources are encoded otherwise."""
        return self

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of ids, PAD and EOS included."""

    @cached_property
    @abc.abstractmethod
    def pieces(self) -> list[str]:
        """A unique name for each id."""

    @cached_property
    def tags(self) -> list[str]:
        """Tags that are one piece with the space after them; see `data.mixture`."""
        return []

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return fingerprint(self.content)

    @abc.abstractmethod
    def encode(self, text: str) -> list[int]:
        """Returns the ids of one line, without EOS."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of each line, without EOS; uses one thread."""
        return [self.encode(text) for text in texts]

    @abc.abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of `ids` up to the first EOS; PAD is skipped."""

    @cached_property
    @abc.abstractmethod
    def graph(self) -> Any:
        """A `SentencePieceGraph` or `SubwordGraph`: the same as TensorFlow ops.

        An exported module must hold its `resource` as an attribute.
        """

    @abc.abstractmethod
    def splits(self) -> Splits:
        """Returns how `subword_dropout` splits tokens."""

    @abc.abstractmethod
    def parts(self, piece: str) -> list[int]:
        """Returns the ids that a piece of another vocabulary of this kind is cut into."""


def until_eos(ids: Iterable[int]) -> list[int]:
    """Returns `ids` up to the first EOS, without PAD."""
    return [int(token) for token in takewhile(lambda token: token != EOS, ids) if token != PAD]


def symbol(tag: str) -> str:
    """Returns what stands before a source and is one piece of the vocabulary: the tag and a space."""
    return f"{tag} " if tag else ""


def tagged(texts: Sequence[str], tag: str) -> list[str]:
    """Returns texts with a tag before those that are not blank and do not have it."""
    prefix = symbol(tag)
    return [text if is_blank(text) or text.startswith(prefix) else prefix + text for text in texts]


def leading_tag(line: str, tags: Sequence[str]) -> str:
    """Returns the tag that a line begins with and its space; "" where it is none of some tags."""
    first, space, _ = line.partition(" ")
    return first + space if space and first in tags else ""
