"""Labelled brackets of constituency trees, scored as EVALB does, without TensorFlow.

The measures are those of "A Procedure for Quantitatively Comparing the Syntactic Coverage of English
Grammars" (Black et al., 1991), the rules those of EVALB (Sekine and Collins, 1997) with its COLLINS.prm, by
which parsers of the Penn Treebank are compared:

- a bracket is a label and the words from its first to its last; a bracket matches one of the same label and
  words, each only once: of NP over NP, predicted once, one is found and one is missed;
- words tagged -NONE-, or as punctuation, are deleted first, and with them brackets that have no other words;
- TOP does not count; ADVP and PRT are the same; function tags and indices (NP-SBJ-1, NP=2) do not count;
- a sentence of which no word is left is skipped.

In two things this differs. The gold tree's tags say which words are deleted in both trees, as predicted
trees may have no tags; EVALB goes by each tree's own, and does not score a sentence for which that makes a
difference. ROOT, S1 and no label around a sentence are as TOP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import accumulate

from nltk.tree import Tree

from t2t_revival.errors import T2TError
from t2t_revival.parsing.trees import EMPTY, WRAPPERS, bare_label, is_word

DELETED = frozenset({"TOP", EMPTY, ",", ":", "``", "''", "."})  # COLLINS.prm's DELETE_LABEL
NOT_COUNTED = DELETED.union(WRAPPERS, {""})
EQUAL = {"PRT": "ADVP"}  # COLLINS.prm's EQ_LABEL
CUTOFF = 40  # words: EVALB's second summary is of sentences that are no longer
STEP = 10  # words: width of a bucket

Bracket = tuple[str, int, int]  # label, first word, word after the last


@dataclass(frozen=True)
class Counts:
    """What is counted in one sentence or, added up, in many; the measures follow from sums, as in EVALB.

    Precision, recall, F1, exact match and shares of sentences are in percent, and 0 where nothing is counted.
    """

    sentences: int = 0  # without those skipped
    skipped: int = 0  # sentences of which deletion left no word
    words: int = 0  # of gold, punctuation included, traces not: EVALB's length of a sentence
    gold: int = 0  # brackets
    predicted: int = 0  # brackets
    matched: int = 0  # brackets
    crossing: int = 0  # predicted brackets that cross any gold bracket
    exact: int = 0  # sentences all of whose brackets match
    uncrossed: int = 0  # sentences without crossing brackets
    little_crossed: int = 0  # sentences with 2 crossing brackets or less

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def precision(self) -> float:
        """Matched of predicted brackets."""
        return _percent(self.matched, self.predicted)

    @property
    def recall(self) -> float:
        """Matched of gold brackets."""
        return _percent(self.matched, self.gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _percent(2 * self.matched, self.gold + self.predicted)

    @property
    def exact_match(self) -> float:
        """Sentences all of whose brackets match."""
        return _percent(self.exact, self.sentences)

    @property
    def average_crossing(self) -> float:
        """Crossing brackets per sentence."""
        return self.crossing / self.sentences if self.sentences else 0.0

    @property
    def no_crossing(self) -> float:
        """Sentences without crossing brackets."""
        return _percent(self.uncrossed, self.sentences)

    @property
    def two_or_less_crossing(self) -> float:
        """Sentences with 2 crossing brackets or less."""
        return _percent(self.little_crossed, self.sentences)


@dataclass(frozen=True)
class Parseval:
    """The score of a corpus."""

    overall: Counts
    up_to_40: Counts  # sentences of at most 40 words
    by_length: dict[str, Counts]  # "1-10", "11-20", "21-30", "31-40" and "41+" words; all are there


def score(gold: Tree, predicted: Tree) -> Counts:
    """Compares the trees of one sentence.

    Args:
        gold: the tree that is right, with tags; as `read_trees` or a treebank has it.
        predicted: a tree over the same words, of any tags; traces need not be the same.

    Raises:
        T2TError: the words differ.
    """
    words = _words(gold)
    _check_words([word for word, _ in words], [word for word, _ in _words(predicted)])
    positions = [0, *accumulate(tag not in DELETED for _, tag in words)]
    if not positions[-1]:
        return Counts(skipped=1, words=len(words))
    right, ours = _brackets(gold, positions), _brackets(predicted, positions)
    matched = (Counter(right) & Counter(ours)).total()
    crossing = _crossing(ours, right)
    return Counts(
        sentences=1,
        words=len(words),
        gold=len(right),
        predicted=len(ours),
        matched=matched,
        crossing=crossing,
        exact=len(right) == matched == len(ours),
        uncrossed=crossing == 0,
        little_crossed=crossing <= 2,
    )


def score_corpus(
    gold_trees: Iterable[Tree], predicted_trees: Iterable[Tree], names: Sequence[str] | None = None
) -> Parseval:
    """Compares the trees of many sentences; see `score`.

    Args:
        gold_trees: one tree for each sentence.
        predicted_trees: as many.
        names: name each pair of trees in an error; "tree 1" and so on if not given.

    Raises:
        T2TError: there are no trees, unequal numbers of them, or the words of a pair differ.
    """
    gold, predicted = list(gold_trees), list(predicted_trees)
    if len(gold) != len(predicted):
        raise T2TError(f"{len(gold)} gold trees but {len(predicted)} predicted trees")
    if not gold:
        raise T2TError("there is nothing to score: no trees")
    names = names or [f"tree {number}" for number in range(1, len(gold) + 1)]
    counts = [_named_score(*pair) for pair in zip(gold, predicted, names, strict=True)]
    buckets = [(low, low + STEP - 1) for low in range(1, CUTOFF, STEP)]
    return Parseval(
        overall=_of_length(counts),
        up_to_40=_of_length(counts, most=CUTOFF),
        by_length={f"{low}-{high}": _of_length(counts, low, high) for low, high in buckets}
        | {f"{CUTOFF + 1}+": _of_length(counts, CUTOFF + 1)},
    )


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _of_length(counts: Iterable[Counts], least: int = 0, most: int | None = None) -> Counts:
    chosen = (each for each in counts if least <= each.words and (most is None or each.words <= most))
    return sum(chosen, Counts())


def _named_score(gold: Tree, predicted: Tree, name: str) -> Counts:
    try:
        return score(gold, predicted)
    except T2TError as error:
        raise T2TError(f"{name}: {error}") from error


def _words(tree: Tree) -> list[tuple[str, str]]:
    """Words with their tags, without traces, which predicted trees do not have."""
    return [(word, tag) for word, tag in tree.pos() if tag != EMPTY]


def _check_words(gold: list[str], predicted: list[str]) -> None:
    for number, (right, ours) in enumerate(zip(gold, predicted, strict=False), start=1):
        if right != ours:
            raise T2TError(f"word {number} is {right!r} in the gold tree but {ours!r} in the predicted tree")
    if len(gold) != len(predicted):
        raise T2TError(f"the gold tree has {len(gold)} words but the predicted tree has {len(predicted)}")


def _brackets(tree: Tree, positions: Sequence[int]) -> list[Bracket]:
    """The brackets that count; positions: for each word, and behind the last, how many are left before it."""
    found: list[Bracket] = []
    _collect(tree, 0, found)
    moved = [(EQUAL.get(label, label), positions[start], positions[end]) for label, start, end in found]
    return [(label, start, end) for label, start, end in moved if start < end and label not in NOT_COUNTED]


def _collect(tree: Tree, start: int, found: list[Bracket]) -> int:
    """Adds all brackets of a tree whose first word is `start` to `found`; returns the word after its last."""
    if is_word(tree):
        return start + (tree.label() != EMPTY)
    end = start
    for child in tree:
        end = _collect(child, end, found)
    found.append((bare_label(tree.label()), start, end))
    return end


def _crossing(ours: Iterable[Bracket], right: Iterable[Bracket]) -> int:
    spans = {(start, end) for _, start, end in right}
    return sum(any(_cross(bracket[1:], span) for span in spans) for bracket in ours)


def _cross(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether they have words in common, and each has words of its own."""
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]
