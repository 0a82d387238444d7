r"""The built-in sample corpus: English sentences with translations and trees, from a synchronous grammar.

    for sample in generate("train", 1000):
        print(sample.english, sample.german, sample.french, sample.tree, sep="\t")

A meaning is drawn at random (`compose`) and worded by three independent linearisers (`english`, `german`,
`french`). A tenth of the word pairs (adjective and noun, verb and object noun), chosen by checksum, is held
out: they never occur in train or dev, and every test sentence has one, of words that occur in training.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.sample_corpus import english, french, german
from t2t_revival.sample_corpus.alignment import Word, pharaoh
from t2t_revival.sample_corpus.compose import Composer
from t2t_revival.sample_corpus.meaning import Sentence, combinations

SPLITS = ("train", "dev", "test")
DEFAULT_SIZES = {"train": 20000, "dev": 500, "test": 500}
HELD_OUT_ONE_IN = 10
DEV_ONE_IN = 20
MAX_REJECTED_DRAWS = 100_000  # in succession


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

    def _worded(self, side: str) -> tuple[str, list[Word]]:
        if side == "english":
            return self.english, english.words(english.sentence(self.meaning))
        return getattr(self, side), (german if side == "german" else french).words(self.meaning)


def generate(split: str, size: int | None = None, seed: int = 1) -> Iterator[SampleSentence]:
    """Yields sentences of a split, no English sentence twice; deterministic on every version of Python.

    The splits are disjoint for all sizes and seeds. Every word of "test" occurs in the default number of
    training sentences of the same seed, but not necessarily in fewer.

    Args:
        split: "train", "dev" or "test".
        size: number of sentences. `None` uses `DEFAULT_SIZES`. A larger size continues a smaller one.
        seed: seed of the random choices.

    Raises:
        T2TError: the split is unknown, the size negative, or larger than the grammar yields.
    """
    if split not in SPLITS:
        raise T2TError(did_you_mean(split, SPLITS, "split of the sample corpus"))
    size = DEFAULT_SIZES[split] if size is None else size
    if size < 0:
        raise T2TError(f"the sample corpus cannot have {size} sentences; give a size of 0 or more")
    return islice(_sentences(split, seed), size)


def cached_sentences(split: str) -> list[SampleSentence]:
    """Returns the sentences of a split by default, cached for all shards of a process."""
    return _cached(split, seed=1)


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
    training_words = _training_words(seed) if split == "test" else None
    seen: set[str] = set()
    rejected = 0
    while rejected < MAX_REJECTED_DRAWS:
        rejected += 1
        meaning = composer.sentence()
        tree = english.sentence(meaning)
        text = english.text(tree)
        if text in seen or split_of(meaning, text) != split:
            continue
        sample = SampleSentence(
            text, german.sentence(meaning), french.sentence(meaning), english.bracketing(tree), meaning
        )
        if training_words is not None and not words(sample) <= training_words:
            continue
        seen.add(text)
        rejected = 0
        yield sample
    raise T2TError(f"the sample grammar has only {len(seen)} sentences for {split!r}; give a smaller size")


def words(sample: SampleSentence) -> set[str]:
    """Returns the words of all three sides, each with its language, in lower case without punctuation."""
    sides = (("en", sample.english), ("de", sample.german), ("fr", sample.french))
    return {f"{side} {word.strip(',.?')}" for side, text in sides for word in text.lower().split()}


@lru_cache(maxsize=len(SPLITS))
def _cached(split: str, seed: int) -> list[SampleSentence]:
    return list(generate(split, seed=seed))


@lru_cache(maxsize=4)
def _training_words(seed: int) -> frozenset[str]:
    return frozenset(word for sample in _cached("train", seed=seed) for word in words(sample))
