"""Text encoders: SentencePiece's and T2T's subwords, in Python and in the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from t2t_revival.data.vocabulary.marian import MarianVocabulary
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import MARIAN, SUBWORDS, Splits, TextEncoder
from t2t_revival.errors import T2TError

__all__ = ["TextEncoder", "Vocabularies", "copy_name", "open_vocabulary"]


def open_vocabulary(path: str | Path, content: bytes | None = None) -> TextEncoder:
    """Opens a vocabulary file, by the end of its name.

    ".subwords" and ".subwords.en" are T2T's, ".marian" is Marian's, and any other SentencePiece's.

    `content` is that of the file; `None` reads it.

    Raises:
        T2TError: the file is missing or corrupt.
    """
    suffixes = Path(path).suffixes[-2:]
    if MARIAN in suffixes:
        return MarianVocabulary(path, content)
    kind = SubwordVocabulary if SUBWORDS in suffixes else Vocabulary
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
        return cls.of([open_vocabulary(path) for path in paths])

    @classmethod
    def open_known(cls, known: Mapping[Path, str], made: str) -> Vocabularies:
        """Opens one or two files with known fingerprints, with which something was `made`, as "M was made".

        Raises:
            T2TError: a file is missing, corrupt, or another one.
        """
        opened = cls.open(list(known))
        for vocabulary in opened.all:
            if vocabulary.fingerprint != known[vocabulary.path]:
                raise T2TError(f"{vocabulary.path}: not the vocabulary that {made} with; put that one back")
        return opened

    @classmethod
    def of(cls, opened: Sequence[TextEncoder]) -> Vocabularies:
        """Returns one vocabulary for both sides, or two."""
        return cls(opened[0], opened[-1].of_targets)

    def reversed(self) -> Vocabularies:
        """Returns them for the other direction.

        Raises:
            T2TError: sources are encoded otherwise than targets by the same file.
        """
        if not self.separate and self.inputs is not self.targets:
            raise T2TError(
                f"{self.inputs.path}: Marian's vocabularies are for one direction: the other one is a "
                "problem of its own, such as translate_fi_en beside translate_en_fi"
            )
        return Vocabularies(self.targets, self.inputs)

    @property
    def separate(self) -> bool:
        """True if there are two."""
        inputs, targets = self
        return (inputs.path, inputs.content) != (targets.path, targets.content)

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
