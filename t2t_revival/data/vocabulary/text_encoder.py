"""`TextEncoder`, the base of all vocabularies (T2T's `TextEncoder`)."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.splits import Splits

PAD, EOS = 0, 1
SUBWORDS = ".subwords"  # extension of T2T's vocabulary files


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

    Raises:
        T2TError: the file is missing.
    """

    unknown = banned = PAD

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        self.path, self._given_content = Path(path), content
        self.content = read_vocabulary(self.path) if content is None else content

    def __reduce__(self) -> tuple[type[TextEncoder], tuple[Path, bytes | None]]:
        return type(self), (self.path, self._given_content)

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
        return hashlib.sha256(self.content).hexdigest()

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


def read_vocabulary(path: Path) -> bytes:
    """Returns the content of a vocabulary file; raises T2TError if it is missing."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise T2TError(f"{path}: no such vocabulary") from error


def fingerprint(path: Path) -> str:
    """Returns the SHA-256 of a vocabulary file, in hexadecimal; does not parse it."""
    return hashlib.sha256(read_vocabulary(path)).hexdigest()


def until_eos(ids: Iterable[int]) -> list[int]:
    """Returns `ids` up to the first EOS, without PAD."""
    return [int(token) for token in takewhile(lambda token: token != EOS, ids) if token != PAD]
