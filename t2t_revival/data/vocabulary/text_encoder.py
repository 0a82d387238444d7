"""`TextEncoder`, the interface of all vocabularies, and the encoder for a vocabulary file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary

if TYPE_CHECKING:
    import tensorflow as tf

SUBWORDS = ".subwords"  # extension of T2T's vocabulary files


class TextEncoder(Protocol):
    """Text to ids and back, in Python and in the graph; PAD is 0 and EOS 1 (T2T's `TextEncoder`).

    Attributes:
        path: the vocabulary file.
        content: the bytes of that file.
        unknown: the id of text outside the vocabulary; PAD where every text has ids.
    """

    path: Path
    content: bytes
    unknown: int

    @property
    def size(self) -> int:
        """Number of ids."""

    @property
    def pieces(self) -> list[str]:
        """A unique name for each id."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the content, in hexadecimal."""

    def encode(self, text: str) -> list[int]:
        """Returns the ids of one line, without EOS."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of each line, without EOS."""

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of `ids` up to the first EOS; PAD is skipped."""

    @property
    def graph_resource(self) -> Any:
        """The resource that an exported module must hold as an attribute to use the two methods below."""

    def encode_in_graph(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`encode_batch` as TensorFlow ops: string [batch] -> int32 [batch, None]."""

    def decode_in_graph(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """`decode` of each row as TensorFlow ops: int32 [batch, None] -> string [batch]."""


def open_vocabulary(path: str | Path) -> TextEncoder:
    """Opens a vocabulary file: T2T's if its name ends in ".subwords", else SentencePiece's.

    Raises:
        T2TError: the file is missing or corrupt.
    """
    return SubwordVocabulary(path) if Path(path).suffix == SUBWORDS else Vocabulary(path)
