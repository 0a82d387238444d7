"""Brackets counted by hand from EVALB's rules, and by brute force over the text of random trees."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tree import Tree

from t2t_revival import T2TError
from t2t_revival.metrics.parseval import BracketCounts, score, score_corpus
from t2t_revival.parsing.trees import cleaned
from tests.support.evalb_rules import perturbed, random_tree, reference, untagged

DOG = "(S (NP (DT The) (NN dog)) (VP (VBZ sees) (NP (DT a) (NN cat)) (PP (IN in) (NP (NNP May)))) (. .))"


def brackets(gold: str, predicted: str) -> tuple[int, int, int, int]:
    counts = score(Tree.fromstring(gold), Tree.fromstring(predicted))
    return counts.gold, counts.predicted, counts.matched, counts.crossing


def words(number: int) -> Tree:
    """A tree (S (NP a) (VP a ...)) of `number` words."""
    return Tree("S", [Tree("NP", [Tree("NN", ["a"])]), Tree("VP", [Tree("VB", ["a"])] * (number - 1))])


def test_a_sentence_by_hand() -> None:
    # without the full stop, gold: S 0-7, NP 0-2, VP 2-7, NP 3-5, PP 5-7, NP 6-7; predicted: NP 3-7 too
    predicted = DOG.replace("(NP (DT a) (NN cat))", "(NP (NP (XX a) (XX cat))").replace("May)))", "May))))")
    counts = score(Tree.fromstring(DOG), Tree.fromstring(predicted))
    assert counts == BracketCounts(
        sentences=1, words=8, gold=6, predicted=7, matched=6, uncrossed=1, little_crossed=1
    )
    assert counts.precision == pytest.approx(100 * 6 / 7, abs=1e-9)
    assert counts.recall == 100
    assert counts.f1 == pytest.approx(100 * 12 / 13, abs=1e-9)
    assert (counts.exact_match, counts.average_crossing, counts.no_crossing) == (0, 0, 100)


RULES = [
    ("the label counts", "(S (NP (N a)) (V b))", "(S (VP (X a)) (X b))", (2, 2, 1, 0)),
    ("so does the span", "(S (NP (N a)) (V b))", "(S (NP (X a) (X b)))", (2, 2, 1, 0)),
    (
        "punctuation goes",
        "(S (NP (N a) (, ,)) (V b) (. .))",
        "(S (NP (X a)) (X ,) (X b) (X .))",
        (2, 2, 2, 0),
    ),
    (
        "all kinds of it",
        "(S (`` x) (N a) (: x) (V b) ('' x))",
        "(S (X x) (X a) (X x) (S (X b) (X x)))",
        (1, 2, 1, 0),
    ),
    ("gold's tags decide", "(S (N ,) (V b))", "(S (NP (, ,)) (, b))", (1, 2, 1, 0)),
    ("other brackets stay", "(S (-LRB- x) (V b))", "(S (NP (X x)) (X b))", (1, 2, 1, 0)),
    ("empty ones go", "(S (NP (N a)) (V b) (. .))", "(S (NP (X a)) (X b) (PRN (NP (X .))))", (2, 2, 2, 0)),
    ("PRT is ADVP", "(S (PRT (R a)) (V b))", "(S (ADVP (X a)) (X b))", (2, 2, 2, 0)),
    ("ADVP is PRT", "(S (ADVP (R a)) (V b))", "(S (PRT (X a)) (X b))", (2, 2, 2, 0)),
    ("PRT over ADVP", "(S (PRT (ADVP (R a))) (V b))", "(S (PRT (X a)) (X b))", (3, 2, 2, 0)),
    ("TOP does not count", "(TOP (S (N a) (V b)))", "(S (TOP (X a) (X b)))", (1, 1, 1, 0)),
    ("nor words tagged so", "(S (TOP x) (V b))", "(S (NP (X x)) (X b))", (1, 1, 1, 0)),
    ("nor do other roots", "( (S (N a) (V b)))", "(ROOT (S1 (X a) (X b)))", (1, 0, 0, 0)),
    ("function tags", "(S (NP-SBJ-1 (N a)) (VP=2 (V b)))", "(S (NP (X a)) (VP-TMP (X b)))", (3, 3, 3, 0)),
    ("traces", "(S (NP (-NONE- *)) (N a) (VP (V b) (-NONE- 0)))", "(S (X a) (VP (X b)))", (2, 2, 2, 0)),
    ("traces in both", "(S (N a) (-NONE- 0))", "(S (NP (-NONE- *)) (X a))", (1, 1, 1, 0)),
    ("unary: twice in gold", "(S (NP (NP (N a))) (V b))", "(S (NP (X a)) (X b))", (3, 2, 2, 0)),
    ("unary: twice predicted", "(S (NP (N a)) (V b))", "(S (NP (NP (X a))) (X b))", (2, 3, 2, 0)),
    ("unary: twice in both", "(S (NP (NP (N a))) (V b))", "(S (NP (NP (X a))) (X b))", (3, 3, 3, 0)),
    ("unary: any order", "(S (NP (VP (N a))) (V b))", "(S (VP (NP (X a))) (X b))", (3, 3, 3, 0)),
    ("equal by deletion", "(S (NP (NP (N a)) (. .)))", "(S (NP (X a)) (X .))", (3, 2, 2, 0)),
    ("crossing", "(S (A (N a) (N b)) (N c))", "(S (X a) (B (X b) (X c)))", (2, 2, 1, 1)),
    ("to the left", "(S (N a) (A (N b) (N c)))", "(S (B (X a) (X b)) (X c))", (2, 2, 1, 1)),
    (
        "predicted: each once",
        "(S (A (B (N a) (N b)) (N c)) (N d))",
        "(S (X a) (A (X b) (X c) (X d)))",
        (3, 2, 1, 1),
    ),
    ("equal ones each", "(S (A (N a) (N b)) (N c))", "(S (X a) (A (A (X b) (X c))))", (2, 3, 1, 2)),
    ("not on punctuation", "(S (A (N a) (, ,)) (N b))", "(S (X a) (B (X ,) (X b)))", (2, 2, 1, 0)),
]


@pytest.mark.parametrize(("rule", "gold", "predicted", "expected"), RULES)
def test_rules(rule: str, gold: str, predicted: str, expected: tuple[int, ...]) -> None:
    assert brackets(gold, predicted) == expected, rule


def test_crossing_of_sentences() -> None:
    gold = Tree.fromstring("(S (A (N a) (N b)) (A (N c) (N d)) (A (N e) (N f)) (N g))")
    flat = Tree.fromstring("(S (X a) (X b) (X c) (X d) (X e) (X f) (X g))")
    two = Tree.fromstring("(S (X a) (B (X b) (X c)) (B (X d) (X e)) (X f) (X g))")
    three = Tree.fromstring("(S (X a) (B (X b) (X c)) (B (X d) (X e)) (B (X f) (X g)))")
    overall = score_corpus([gold] * 4, [gold, flat, two, three]).overall
    assert [score(gold, tree).crossing for tree in (gold, flat, two, three)] == [0, 0, 2, 3]
    assert overall.average_crossing == 5 / 4
    assert (overall.no_crossing, overall.two_or_less_crossing, overall.exact_match) == (50, 75, 25)


def test_corpus_figures_are_of_sums_not_means() -> None:
    short, other, dog = map(Tree.fromstring, ("(S (N a))", "(X (N a))", DOG))
    assert score_corpus([short, dog], [other, dog]).overall.f1 == pytest.approx(100 * 6 / 7, abs=1e-9)


def test_lengths() -> None:
    numbers = [2, 10, 11, 20, 21, 30, 31, 40, 41, 50]
    result = score_corpus(map(words, numbers), map(words, numbers))
    assert {name: counts.sentences for name, counts in result.by_length.items()} == {
        "1-10": 2, "11-20": 2, "21-30": 2, "31-40": 2, "41+": 2,
    }  # fmt: skip
    assert result.up_to_40.sentences == 8
    assert result.up_to_40.words == sum(numbers[:8])
    assert sum(result.by_length.values(), BracketCounts()) == result.overall


def test_length_is_with_punctuation_and_without_traces() -> None:
    tree = Tree("S", [*words(40), Tree("-NONE-", ["*"])])
    assert score_corpus([tree], [tree]).up_to_40.sentences == 1
    tree.append(Tree(".", ["."]))
    assert score_corpus([tree], [tree]).up_to_40.sentences == 0


def test_sentences_of_punctuation_alone_are_skipped() -> None:
    dots, dog = Tree.fromstring("(NP (: --) (. .))"), Tree.fromstring(DOG)
    assert score(dots, dots) == BracketCounts(skipped=1, words=2)
    overall = score_corpus([dots, dog], [dots, dog]).overall
    assert (overall.sentences, overall.skipped, overall.f1, overall.exact_match) == (1, 1, 100, 100)


def test_nothing_to_count_is_zero() -> None:
    tree = Tree.fromstring("(TOP (NN Yes))")
    counts = score(tree, tree)
    assert (counts.f1, counts.precision, counts.recall, counts.exact_match) == (0, 0, 0, 100)
    assert (BracketCounts().f1, BracketCounts().exact_match, BracketCounts().average_crossing) == (0, 0, 0)


def test_numbers_of_trees() -> None:
    tree = Tree.fromstring(DOG)
    with pytest.raises(T2TError, match="2 gold trees but 1 predicted trees"):
        score_corpus([tree, tree], [tree])
    with pytest.raises(T2TError, match="nothing to score"):
        score_corpus([], [])


seeds = st.builds(random.Random, st.integers(0, 2**32))
sizes = st.integers(1, 12)


@settings(max_examples=300, deadline=None)
@given(source=seeds, size=sizes, changes=st.integers(0, 12))
def test_brute_force_agrees(source: random.Random, size: int, changes: int) -> None:
    gold = random_tree(source, size)
    predicted = perturbed(gold, source, changes)
    counts = score(gold, predicted)
    if counts.skipped:
        return
    found = counts.gold, counts.predicted, counts.matched, counts.crossing
    assert found == reference(gold, predicted)
    assert score(gold, untagged(predicted)) == counts  # tags and traces of predicted trees do not matter
    assert score(cleaned(gold), cleaned(predicted)) == counts  # trees of files and of treebanks alike
