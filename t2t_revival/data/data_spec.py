"""`DataSpec`: the data that a problem asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.data.sources import Source


@dataclass(frozen=True)
class DataSpec:
    """The source, vocabulary and references of a problem's data.

    Attributes:
        name: the prefix of all file names.
        data_source: the `--data_source`. `None` uses the one that the data_dir was begun with, or else
            `default_source`.
        default_source: the `--data_source` of an empty data_dir.
        make_source: called with a `--data_source` and a folder for temporary files; returns the source.
        vocab_size: number of pieces. 0 uses `default_vocab_size`, or as many as the text yields if those are
            fewer.
        default_vocab_size: called with the source; returns a number of pieces.
        user_symbols: called with the source; returns texts that are always one piece of the vocabulary.
        references: called with the source and a split; returns one line per pair of dev or test against which
            outputs are measured. `None` measures them against the targets.
        vocab_file: an existing vocabulary to use. `None` trains one.
    """

    name: str
    data_source: str | None
    default_source: str
    make_source: Callable[[str, Path | None], Source]
    vocab_size: int
    default_vocab_size: Callable[[Source], int]
    user_symbols: Callable[[Source], Sequence[str]] = lambda source: ()
    references: Callable[[Source, str], Iterable[str]] | None = None
    vocab_file: Path | None = None
