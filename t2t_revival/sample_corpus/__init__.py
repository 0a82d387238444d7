r"""The built-in sample corpus: English sentences with German and French translations, trees and alignments.

    for english, german in zip(lines("train.en"), lines("train.de")):
        print(english, german, sep="\t")

A tenth of the word pairs (adjective and noun, verb and object noun) is held out: they never occur in train or
dev, and every test sentence has one, of words that occur in training. No English sentence occurs twice.
`python -m tools.sample_corpus`, in a checkout, composed the sentences by a synchronous grammar.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from zipfile import ZipFile

CORPUS = Path(__file__).with_name("corpus.zip")


@cache
def lines(name: str) -> list[str]:
    """Returns the lines of a file of the corpus, which is read once in a process.

    The files are, with "dev" and "test" for "train" too: "train.en", "train.de", "train.fr", "train.trees" in
    Penn Treebank brackets, and the word alignments "train.en-de.align", "train.en-fr.align" and
    "train.de-fr.align", such as "0-0 1-2".
    """
    with ZipFile(CORPUS) as corpus:
        return corpus.read(name).decode().splitlines()
