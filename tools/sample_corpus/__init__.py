"""The grammar of the built-in sample corpus: English sentences with translations and trees.

A meaning is drawn at random (`compose`) and worded by three independent linearisers (`english`, `german`,
`french`). A tenth of the word pairs (adjective and noun, verb and object noun), chosen by checksum, is held
out: they never occur in train or dev, and every test sentence has one, of words that occur in training.
`python -m tools.sample_corpus` writes the corpus of the package.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from tools.sample_corpus import english, french, german
from tools.sample_corpus.alignment import Word, pharaoh
from tools.sample_corpus.compose import Composer
from tools.sample_corpus.meaning import Sentence, combinations

HELD_OUT_ONE_IN = 10
DEV_ONE_IN = 20


@dataclass(frozen=True)
class SampleSentence:
    """One English sentence, its translations, its Penn Treebank bracketing on one line, and its meaning."""

    english: str
    german: str
    french: str
    tree: str
    meaning: Sentence = field(repr=False, compare=False)

    def alignment(self, source: str, target: str) -> str:
        """Returns the gold word alignment of two sides, "english", "german" or "french": "0-0 1-2 ...".

        The pairs are numbers of words between spaces, source first; words that express the same part of the
        meaning are linked.
        """
        return pharaoh(self._worded(source), self._worded(target))

    def words(self) -> set[str]:
        """Returns the words of all three sides, each with its language, in lower case, unpunctuated."""
        sides = (("en", self.english), ("de", self.german), ("fr", self.french))
        return {f"{side} {word.strip(',.?')}" for side, text in sides for word in text.lower().split()}

    def _worded(self, side: str) -> tuple[str, list[Word]]:
        if side == "english":
            return self.english, english.words(english.sentence(self.meaning))
        return getattr(self, side), (german if side == "german" else french).words(self.meaning)


def corpus(sizes: dict[str, int], seed: int = 1) -> dict[str, list[SampleSentence]]:
    """Returns as many sentences of "train", "dev" and "test" as asked, no English sentence twice.

    A larger size continues a smaller one. The splits are disjoint for all sizes and seeds, and every word of
    "test" occurs in "train". The sentences are the same on every version of Python.
    """
    splits = {split: list(islice(_sentences(split, seed), sizes[split])) for split in ("train", "dev")}
    known = frozenset[str]().union(*(sample.words() for sample in splits["train"]))
    test = (sample for sample in _sentences("test", seed) if sample.words() <= known)
    return {**splits, "test": list(islice(test, sizes["test"]))}


def is_held_out(pair: tuple[str, str]) -> bool:
    """Returns whether a pair (adjective, noun) or (verb, object noun) is held out for the test split."""
    return zlib.crc32(" ".join(pair).encode()) % HELD_OUT_ONE_IN == 0


def split_of(meaning: Sentence, text: str) -> str:
    """Returns the split of a sentence."""
    if any(map(is_held_out, combinations(meaning))):
        return "test"
    return "dev" if zlib.crc32(text.encode()) % DEV_ONE_IN == 0 else "train"


def _sentences(split: str, seed: int) -> Iterator[SampleSentence]:
    composer = Composer(random.Random(seed))
    seen: set[str] = set()
    while True:
        meaning = composer.sentence()
        tree = english.sentence(meaning)
        text = english.text(tree)
        if text not in seen and split_of(meaning, text) == split:
            seen.add(text)
            yield SampleSentence(
                text, german.sentence(meaning), french.sentence(meaning), english.bracketing(tree), meaning
            )
