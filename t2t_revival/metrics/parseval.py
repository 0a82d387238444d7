"""Labelled brackets of constituency trees, scored as EVALB does, without TensorFlow.

The measures are those of "A Procedure for Quantitatively Comparing the Syntactic Coverage of English
Grammars" (Black et al., 1991), the rules those of EVALB (Sekine and Collins, 1997) with its COLLINS.prm, by
which parsers of the Penn Treebank are compared:

- a bracket is a label and a span of words; it matches one bracket of the same label and span: if gold has NP
  over NP, and the prediction has one of them, one matches and one is missed;
- words tagged -NONE-, or as punctuation, are deleted first, and with them brackets without other words;
- TOP does not count; ADVP and PRT are equal; function tags and indices (NP-SBJ-1, NP=2) are ignored;
- a sentence without words after deletion is skipped;
- a sentence for which there is no tree is an error: it counts in no measure, and such sentences are counted.

There are two differences. The tags of the gold tree decide which words are deleted in both trees, as
predicted trees may have no tags; EVALB uses the tags of each tree, and does not score a sentence for which
that makes a difference. ROOT, S1 and an empty label around a sentence are treated as TOP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate, zip_longest

from nltk.tree import Tree

from t2t_revival.errors import T2TError, at
from t2t_revival.parsing.trees import EMPTY, WRAPPERS, bare_label, is_word

DELETED = frozenset({"TOP", EMPTY, ",", ":", "``", "''", "."})  # COLLINS.prm's DELETE_LABEL
NOT_COUNTED = DELETED.union(WRAPPERS, {""})
EQUAL = {"PRT": "ADVP"}  # COLLINS.prm's EQ_LABEL
CUTOFF = 40  # words: longest sentences of EVALB's second summary
STEP = 10  # words: width of a bucket

Bracket = tuple[str, int, int]  # label, first word, word after the last


@dataclass(frozen=True)
class BracketCounts:
    """Counts of one sentence or, added up, of many; the measures are computed from sums, as in EVALB.

    Precision, recall, F1, exact match and shares of sentences are in percent, and 0 if nothing was counted.
    """

    sentences: int = 0  # without those skipped
    skipped: int = 0  # sentences without words after deletion
    words: int = 0  # of gold, with punctuation, without traces: EVALB's length of a sentence
    gold: int = 0  # brackets
    predicted: int = 0  # brackets
    matched: int = 0  # brackets
    crossing: int = 0  # predicted brackets that cross any gold bracket
    exact: int = 0  # sentences all of whose brackets match
    uncrossed: int = 0  # sentences without crossing brackets
    little_crossed: int = 0  # sentences with 2 crossing brackets or less
    errors: int = 0  # sentences without a gold tree, or without a predicted one: EVALB's "Error sentence"
    missed: int = 0  # their gold brackets, which `gold` does not count

    def __add__(self, other: BracketCounts) -> BracketCounts:
        return BracketCounts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def precision(self) -> float:
        """Share of predicted brackets that match."""
        return _percent(self.matched, self.predicted)

    @property
    def recall(self) -> float:
        """Share of gold brackets that match."""
        return _percent(self.matched, self.gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _percent(2 * self.matched, self.gold + self.predicted)

    @property
    def f1_with_errors(self) -> float:
        """F1 if the gold brackets of sentences without a predicted tree count as missed."""
        return _percent(2 * self.matched, self.gold + self.missed + self.predicted)

    @property
    def exact_match(self) -> float:
        """Share of sentences all of whose brackets match."""
        return _percent(self.exact, self.sentences)

    @property
    def average_crossing(self) -> float:
        """Crossing brackets per sentence."""
        return self.crossing / self.sentences if self.sentences else 0.0

    @property
    def no_crossing(self) -> float:
        """Share of sentences without crossing brackets."""
        return _percent(self.uncrossed, self.sentences)

    @property
    def two_or_less_crossing(self) -> float:
        """Share of sentences with 2 crossing brackets or less."""
        return _percent(self.little_crossed, self.sentences)


@dataclass(frozen=True)
class Parseval:
    """The score of a corpus."""

    overall: BracketCounts
    up_to_40: BracketCounts  # sentences of at most 40 words
    by_length: dict[str, BracketCounts]  # "1-10", "11-20", "21-30", "31-40" and "41+" words; has all keys


def score(gold: Tree | None, predicted: Tree | None) -> BracketCounts:
    """Compares the trees of one sentence.

    Args:
        gold: correct tree, with tags, as `read_trees` or a treebank has it; `None` where there is no tree.
        predicted: tree over the same words, with any tags; traces need not be equal. `None` where the parser
            found no tree.

    Raises:
        T2TError: the words differ.
    """
    if gold is None:
        return BracketCounts(errors=1)
    words = _words(gold)
    positions = [0, *accumulate(tag not in DELETED for _, tag in words)]
    if predicted is None and positions[-1]:
        return BracketCounts(errors=1, words=len(words), missed=len(_brackets(gold, positions)))
    if predicted is not None:
        theirs = _words(predicted)
        for number, pair in enumerate(zip_longest(words, theirs, fillvalue=("", "")), start=1):
            (word, _), (other, _) = pair
            if word != other:
                raise T2TError(
                    f"word {number} is {word!r} in the gold tree but {other!r} in the predicted tree"
                )
    if predicted is None or not positions[-1]:
        return BracketCounts(skipped=1, words=len(words))
    gold_brackets, predicted_brackets = _brackets(gold, positions), _brackets(predicted, positions)
    matched = (Counter(gold_brackets) & Counter(predicted_brackets)).total()
    spans = {(start, end) for _, start, end in gold_brackets}
    crossing = sum(
        any(a < start < b < end or start < a < end < b for start, end in spans)
        for _, a, b in predicted_brackets
    )
    return BracketCounts(
        sentences=1,
        words=len(words),
        gold=len(gold_brackets),
        predicted=len(predicted_brackets),
        matched=matched,
        crossing=crossing,
        exact=len(gold_brackets) == matched == len(predicted_brackets),
        uncrossed=crossing == 0,
        little_crossed=crossing <= 2,
    )


def score_corpus(
    gold_trees: Iterable[Tree | None],
    predicted_trees: Iterable[Tree | None],
    names: Sequence[str] | None = None,
) -> Parseval:
    """Compares the trees of many sentences; see `score`.

    Args:
        gold_trees: one tree for each sentence, or `None`.
        predicted_trees: as many.
        names: of the pairs of trees, for errors; `None` names them "tree 1" and so on.

    Raises:
        T2TError: there are no trees, unequal numbers of them, or the words of a pair differ.
    """
    gold, predicted = list(gold_trees), list(predicted_trees)
    if len(gold) != len(predicted):
        raise T2TError(f"{len(gold)} gold trees but {len(predicted)} predicted trees")
    if not gold:
        raise T2TError("there is nothing to score: no trees")
    names = names or [f"tree {number}" for number in range(1, len(gold) + 1)]
    counts = []
    for right, tree, name in zip(gold, predicted, names, strict=True):
        with at(name):
            counts.append(score(right, tree))
    buckets = [(low, low + STEP - 1) for low in range(1, CUTOFF, STEP)]
    return Parseval(
        overall=_of_length(counts),
        up_to_40=_of_length(counts, most=CUTOFF),
        by_length={f"{low}-{high}": _of_length(counts, low, high) for low, high in buckets}
        | {f"{CUTOFF + 1}+": _of_length(counts, CUTOFF + 1)},
    )


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _of_length(counts: Iterable[BracketCounts], least: int = 0, most: int | None = None) -> BracketCounts:
    chosen = (each for each in counts if least <= each.words and (most is None or each.words <= most))
    return sum(chosen, BracketCounts())


def _words(tree: Tree) -> list[tuple[str, str]]:
    """Words and their tags, without traces, which predicted trees lack."""
    return [(word, tag) for word, tag in tree.pos() if tag != EMPTY]


def _brackets(tree: Tree, positions: Sequence[int]) -> list[Bracket]:
    """The brackets that count. `positions` maps a word, or the end, to the number of kept words before it."""
    brackets: list[Bracket] = []
    _collect(tree, 0, brackets)
    moved = [(EQUAL.get(label, label), positions[start], positions[end]) for label, start, end in brackets]
    return [(label, start, end) for label, start, end in moved if start < end and label not in NOT_COUNTED]


def _collect(tree: Tree, start: int, brackets: list[Bracket]) -> int:
    """Adds all brackets of a tree whose first word is `start`; returns the word after its last."""
    if is_word(tree):
        return start + (tree.label() != EMPTY)
    end = start
    for child in tree:
        end = _collect(child, end, brackets)
    brackets.append((bare_label(tree.label()), start, end))
    return end
