"""Text encoders: SentencePiece's and T2T's subwords, in Python and in the graph."""

from pathlib import Path

from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import SUBWORDS, TextEncoder

__all__ = ["TextEncoder", "open_vocabulary"]


def open_vocabulary(path: str | Path) -> TextEncoder:
    """Opens a vocabulary file: T2T's if its name ends in ".subwords", else SentencePiece's.

    Raises:
        T2TError: the file is missing or corrupt.
    """
    return SubwordVocabulary(path) if Path(path).suffix == SUBWORDS else Vocabulary(path)
