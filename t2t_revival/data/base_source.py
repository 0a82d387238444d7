"""`Source`, the class of all sources of sentence pairs, users' own included."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from pathlib import Path

SPLITS = ("train", "dev", "test")


def choices_for(source_lang: str, target_lang: str) -> str:
    """Returns what `--data_source` takes, with the files of a folder for two languages."""
    return (
        f"--data_source takes a folder with {folder_files(source_lang, target_lang)}, "
        "sample (built in), tfds:NAME/CONFIG (prepared where TFDS_DATA_DIR points, or downloaded), or "
        "hf:OWNER/NAME/CONFIG (in the cache where HF_HOME points, or downloaded); several are a list "
        "NAME=SOURCE:WEIGHT,NAME=SOURCE:WEIGHT"
    )


def folder_files(source_lang: str, target_lang: str) -> str:
    """Returns the names of the files that a folder of two languages must have."""
    return " ".join(f"{split}.{language}" for split in SPLITS[:2] for language in (source_lang, target_lang))


class Source(abc.ABC):
    """Sentence pairs in splits named "train", "dev" and optionally "test".

    Subclasses implement the three abstract methods; the attributes have defaults.

    Attributes:
        kind: "folder", "tfds", "hf" or "sample", by which a problem chooses its vocabulary size.
        name: equal for equal data, and itself a valid --data_source. "" uses the --data_source that the
            source was made for.
        source_lang: the language of the first sides, for messages.
        target_lang: the language of the second sides.
        optional: the splits that may be missing; sources of several corpora may lack "dev" too.
        wrapped: the source whose pairs this one changes; `None` for a source of its own.
    """

    kind: str = "own"
    name: str = ""
    source_lang: str = "inputs"
    target_lang: str = "targets"
    optional: tuple[str, ...] = ("test",)
    wrapped: Source | None = None

    @abc.abstractmethod
    def splits(self) -> tuple[str, ...]:
        """Returns the existing splits.

        Raises:
            T2TError: the data cannot be found.
        """

    @abc.abstractmethod
    def count(self, split: str) -> int:
        """Returns the number of pairs of a split, empty ones included.

        Raises:
            T2TError: the data cannot be read.
        """

    @abc.abstractmethod
    def pairs(self, split: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
        r"""Yields the pairs (source, target) number `start` up to `stop` of a split, without "\n".

        Raises:
            T2TError: the data cannot be read.
        """

    def weights(self, start: int, stop: int) -> Iterator[float] | None:
        """Returns the weights of the pairs number `start` up to `stop` of train, which multiply their losses.

        `None`, for all pairs of a source, weighs them equally.
        """
        return None

    def alignments(self, split: str, start: int, stop: int) -> Iterator[str] | None:
        """Returns the word alignments of the pairs number `start` up to `stop` of a split: "0-0 1-2 ...".

        Such a line has the numbers of source and target words that belong together, counted from 0; words
        stand between spaces. `None`, for all pairs of a split, if they are not known.
        """
        return None

    def files(self) -> list[Path]:
        """Returns the files that the pairs are read from, by which generated data notices later changes.

        Without any, as by default, a change of the pairs is not noticed: give the source another name then.
        """
        return []

    def version(self) -> str:
        """Returns the version of the set of a library; "" if it has none, or it is not known here."""
        return ""

    def download_note(self) -> str:
        """Returns a line on what the first read will download, and where to; "" if nothing."""
        return ""

    def check(self) -> None:  # noqa: B027 (optional)
        """Checks that the data exists, without reading or downloading it.

        Raises:
            T2TError: it does not exist.
        """

    def close(self) -> None:  # noqa: B027 (optional)
        """Removes temporary files after the last read."""
