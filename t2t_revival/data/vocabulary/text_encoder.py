"""What all kinds of vocabulary have in common, and which kind a file is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from t2t_revival.data.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    import tensorflow as tf

SUBWORDS = ".subwords"  # ends the names of T2T's vocabularies


class TextEncoder(Protocol):
    """Text to ids and back, in Python and in the graph; PAD is 0 and EOS 1 (T2T's `TextEncoder`).

    Attributes:
        path: the file.
        content: what is in it.
        unknown: the id of what has none; PAD where there is no such thing.
    """

    path: Path
    content: bytes
    unknown: int

    @property
    def size(self) -> int:
        """How many ids there are."""

    @property
    def pieces(self) -> list[str]:
        """The name of each id; no two are equal."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the content, in hexadecimal."""

    def encode(self, text: str) -> list[int]:
        """The ids of one line, without EOS."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many lines, without EOS."""

    def decode(self, ids: Iterable[int]) -> str:
        """The line that `ids` stand for, up to the first EOS, without PAD."""

    @property
    def graph_resource(self) -> Any:
        """What an exported module with the two methods below must hold as an attribute."""

    def encode_in_graph(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`encode_batch` as TensorFlow ops: string [batch] -> int32 [batch, None]."""

    def decode_in_graph(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """`decode` of each as TensorFlow ops: int32 [batch, None] -> string [batch]."""


def open_vocabulary(path: str | Path) -> TextEncoder:
    """The vocabulary in a file: T2T's if its name ends in ".subwords", else SentencePiece's.

    Raises:
        T2TError: it is missing or damaged.
    """
    return SubwordVocabulary(path) if Path(path).suffix == SUBWORDS else Vocabulary(path)
