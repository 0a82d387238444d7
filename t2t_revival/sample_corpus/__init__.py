"""The built-in sample corpus: English sentences with translations and trees, from a synchronous grammar.

    for sample in generate("train", 1000):
        print(sample.english, sample.german, sample.french, sample.tree, sep="\\t")

A meaning is drawn at random (`compose`) and worded by three independent linearisers (`english`, `german`,
`french`). Word pairs (adjective and noun, verb and object noun) whose checksum says so are held out: they
never occur in train or dev, and every test sentence has at least one, made of words that training has shown.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from t2t_revival.data.grammar import english, french, german
from t2t_revival.data.grammar.compose import Composer
from t2t_revival.data.grammar.meaning import Sentence, combinations
from t2t_revival.errors import T2TError, did_you_mean

SPLITS = ("train", "dev", "test")
DEFAULT_SIZES = {"train": 20000, "dev": 500, "test": 500}
HELD_OUT_ONE_IN = 10
DEV_ONE_IN = 20
MOST_VAIN_DRAWS = 100_000


@dataclass(frozen=True)
class SampleSentence:
    """One English sentence, its translations, and its Penn Treebank bracketing on one line."""

    english: str
    german: str
    french: str
    tree: str


def generate(split: str, size: int | None = None, seed: int = 1) -> Iterator[SampleSentence]:
    """Sentences of a split, no English sentence twice, the same for the same arguments on every Python.

    The splits are disjoint whatever their sizes and seeds. Every word of "test" occurs in the default
    number of training sentences of the same seed; a smaller training set need not show them all.

    Args:
        split: "train", "dev" or "test".
        size: number of sentences; `DEFAULT_SIZES` where None. A larger size continues a smaller one.
        seed: of the random choices.

    Raises:
        T2TError: no such split, a negative size, or more sentences asked for than the grammar yields.
    """
    if split not in SPLITS:
        raise T2TError(did_you_mean(split, SPLITS, "split of the sample corpus"))
    wanted = DEFAULT_SIZES[split] if size is None else size
    if wanted < 0:
        raise T2TError(f"the sample corpus cannot have {wanted} sentences; give a size of 0 or more")
    return islice(_sentences(split, seed), wanted)


def is_held_out(pair: tuple[str, str]) -> bool:
    """Whether a pair (adjective, noun) or (verb, object noun) is kept for the test."""
    return zlib.crc32(" ".join(pair).encode()) % HELD_OUT_ONE_IN == 0


def split_of(meaning: Sentence, text: str) -> str:
    """The one split that a sentence belongs to."""
    if any(map(is_held_out, combinations(meaning))):
        return "test"
    return "dev" if zlib.crc32(text.encode()) % DEV_ONE_IN == 0 else "train"


def _sentences(split: str, seed: int) -> Iterator[SampleSentence]:
    composer = Composer(random.Random(seed))
    known = _training_words(seed) if split == "test" else None
    seen: set[str] = set()
    vain = 0
    while vain < MOST_VAIN_DRAWS:
        vain += 1
        meaning = composer.sentence()
        tree = english.sentence(meaning)
        text = english.text(tree)
        if text in seen or split_of(meaning, text) != split:
            continue
        sample = SampleSentence(
            text, german.sentence(meaning), french.sentence(meaning), english.bracketing(tree)
        )
        if known is not None and not words(sample) <= known:
            continue
        seen.add(text)
        vain = 0
        yield sample
    raise T2TError(f"the sample grammar has no more than {len(seen)} sentences for {split!r}; ask for fewer")


def words(sample: SampleSentence) -> set[str]:
    """The words of all three sides in lower case, without marks, each with its language."""
    sides = (("en", sample.english), ("de", sample.german), ("fr", sample.french))
    return {f"{side} {word.strip(',.?')}" for side, text in sides for word in text.lower().split()}


@lru_cache(maxsize=4)
def _training_words(seed: int) -> frozenset[str]:
    training = islice(_sentences("train", seed), DEFAULT_SIZES["train"])
    return frozenset(word for sample in training for word in words(sample))
