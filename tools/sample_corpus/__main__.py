"""Writes the sample corpus of the package: `python -m tools.sample_corpus`."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from t2t_revival.sample_corpus import CORPUS
from tools.sample_corpus import SampleSentence, corpus

SIZES = {"train": 20_000, "dev": 500, "test": 500}
SIDES = {"en": "english", "de": "german", "fr": "french"}


def main(path: Path = CORPUS) -> None:
    """Writes the corpus; its bytes are always the same."""
    with zipfile.ZipFile(path, "w") as archive:
        for split, sentences in corpus(SIZES).items():
            for suffix, lines in files(sentences):
                text = "".join(f"{line}\n" for line in lines)
                member = zipfile.ZipInfo(f"{split}.{suffix}")  # of 1980
                archive.writestr(member, text, zipfile.ZIP_BZIP2)


def files(sentences: list[SampleSentence]) -> Iterator[tuple[str, list[str]]]:
    """Yields the files of a split: the end of the name, and the lines."""
    for language, side in SIDES.items():
        yield language, [getattr(sample, side) for sample in sentences]
    yield "trees", [sample.tree for sample in sentences]
    for source, target in combinations(SIDES, 2):
        sides = SIDES[source], SIDES[target]
        yield f"{source}-{target}.align", [sample.alignment(*sides) for sample in sentences]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
