"""Text encoders: SentencePiece's and T2T's subwords, in Python and in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import SUBWORDS, Splits, TextEncoder

__all__ = ["TextEncoder", "Vocabularies", "copy_name", "open_vocabulary"]


def open_vocabulary(path: str | Path, content: bytes | None = None) -> TextEncoder:
    """Opens a vocabulary file: T2T's if its name ends in ".subwords" or ".subwords.en", else SentencePiece's.

    `content` is that of the file; `None` reads it.

    Raises:
        T2TError: the file is missing or corrupt.
    """
    kind = SubwordVocabulary if SUBWORDS in Path(path).suffixes[-2:] else Vocabulary
    return kind(path, content)


def copy_name(path: Path) -> str:
    """Returns the name of a vocabulary's copy: `vocab.X.en.subwords` of T2T's `vocab.X.subwords.en`."""
    language = path.suffix if path.with_suffix("").suffix == SUBWORDS else ""
    return f"{path.name.removesuffix(SUBWORDS + language)}{language}{SUBWORDS}" if language else path.name


class Vocabularies(NamedTuple):
    """The vocabularies of inputs and of targets; most problems have the same one for both."""

    inputs: TextEncoder
    targets: TextEncoder

    @classmethod
    def open(cls, paths: Sequence[Path]) -> Vocabularies:
        """Opens the file of one vocabulary for both sides, or the files of two.

        Raises:
            T2TError: a file is missing or corrupt.
        """
        opened = [open_vocabulary(path) for path in paths]
        return cls(opened[0], opened[-1])

    @property
    def separate(self) -> bool:
        """True if there are two."""
        return self.inputs is not self.targets

    @property
    def all(self) -> list[TextEncoder]:
        """The one, or both."""
        return [*self] if self.separate else [self.inputs]

    @property
    def target_size(self) -> int | None:
        """Number of ids of the targets' own vocabulary; `None` where there is one for both."""
        return self.targets.size if self.separate else None

    def splits(self) -> tuple[Splits, Splits]:
        """Returns how `subword_dropout` splits the tokens of both sides."""
        inputs = self.inputs.splits()
        return inputs, self.targets.splits() if self.separate else inputs

    @property
    def fingerprint(self) -> str:
        """The vocabulary's; of two, both, one after the other."""
        return "".join(vocabulary.fingerprint for vocabulary in self.all)
