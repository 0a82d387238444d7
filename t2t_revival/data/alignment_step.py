"""The step of data generation that writes the word alignments of the training pairs."""

from __future__ import annotations

from pathlib import Path

from t2t_revival.data.base_source import Source
from t2t_revival.data.mixture import CorpusSource
from t2t_revival.data.statistical_alignment import align_corpus
from t2t_revival.utils.files import atomic_write

TRAIN = "train"


def has_own_alignments(source: Source) -> bool:
    """Returns whether a source has a file of the alignments of train, which its data has then too."""
    return source.kind == "folder" and source.alignments(TRAIN, 0, 1) is not None


def write_alignments(source: Source, pairs: int, file: Path) -> None:
    """Writes a line for each pair of train, in Pharaoh's format: the source's own, or else eflomal's.

    Raises:
        T2TError: eflomal is not installed, or fails.
    """
    lines = source.alignments(TRAIN, 0, pairs)
    if lines is None and isinstance(source, CorpusSource):  # whose tags are no words
        lines = source.change_alignments(align_corpus(source.wrapped.pairs(TRAIN, 0, pairs), file.parent))
    elif lines is None:
        lines = align_corpus(source.pairs(TRAIN, 0, pairs), file.parent)
    with atomic_write(file) as content:
        content.writelines(f"{line}\n".encode() for line in lines)
