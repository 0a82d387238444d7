"""Trees as sequences of tokens, as in "Grammar as a Foreign Language" (Vinyals et al., 2015), and back."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tree import Tree

from t2t_revival.parsing.linear import delinearise, labels, linearise, sentence
from t2t_revival.parsing.trees import MAX_DEPTH, bracketing, is_word, parse, read_trees
from tests.support.evalb_rules import untagged

SLEEPS = "(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))"
LINEAR = "(S (NP XX XX )NP (VP XX )VP XX )S"

TREEBANKS = Path(__file__).parents[2].parent / "shared" / "data" / "treebanks"

LABELS = ["S", "SBAR", "SBARQ", "NP", "VP", "X", "XX", "TOP", "ADVP|PRT", "PRT|ADVP", "-LRB-", ",", '"', "''"]
TAGS = ["NN", "PRP$", "-LRB-", "-RRB-", ",", ".", "``", "JJ|NN", "XX"]
STRINGS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="()"), min_size=1)
ANY_LABEL = st.sampled_from(LABELS) | STRINGS
WORDS = st.lists(STRINGS, min_size=1, max_size=6)
LEAVES = st.builds(lambda tag, word: Tree(tag, [word]), st.sampled_from(TAGS) | STRINGS, STRINGS)


def constituents(label: st.SearchStrategy[str]) -> st.SearchStrategy[Tree]:
    """Strategy of trees whose root is not a word, with unary chains."""

    def around(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        return st.builds(Tree, label, st.lists(children, min_size=1, max_size=3))

    return around(st.recursive(LEAVES, around, max_leaves=12))


JUNK = ["(", ")", "()", "((NP", "(N)P", ")(NP", "))NP", "xx", "XXX", "(NP)", "XX)", "the", ",", "-LRB-"]
TOKENS = st.one_of(
    st.just("XX"),
    st.sampled_from([bracket + label for label in ("S", "NP", "XX", "TOP") for bracket in "()"]),
    st.sampled_from(JUNK),
    STRINGS,
)


def is_well_formed(text: str, length: int) -> bool:
    """Returns whether tokens are one constituent over so many words, by reducing innermost ones to words."""
    if text.split().count("XX") != length or text == "XX":
        return False
    left, found = " ".join(text.split()), 1
    while found:
        left, found = re.subn(r"(?<!\S)\(([^\s()]+)(?: XX)+ \)\1(?!\S)", "XX", left)
    return left == "XX"


def check_over(tree: Tree, sentence_words: list[str]) -> None:
    assert tree.leaves() == sentence_words
    assert parse(bracketing(tree)) == tree
    assert not is_word(tree)
    assert all(
        len(node) and (is_word(node) or all(isinstance(n, Tree) for n in node)) for node in tree.subtrees()
    )


def test_the_example_of_the_format() -> None:
    tree = parse(SLEEPS)
    assert linearise(tree) == LINEAR
    assert sentence(tree) == "The dog sleeps ."
    assert labels(linearise(tree)) == {"S", "NP", "VP"}
    without_tags = parse("(S (NP (XX The) (XX dog)) (VP (XX sleeps)) (XX .))")
    assert untagged(tree) == without_tags
    assert delinearise(LINEAR, tree.leaves()) == (without_tags, False)


@given(constituents(ANY_LABEL))
def test_a_tree_comes_back_from_its_tokens(tree: Tree) -> None:
    text = linearise(tree)
    assert text.split().count("XX") == len(tree.leaves())
    assert is_well_formed(text, len(tree.leaves()))
    assert labels(linearise(tree)) == {token[1:] for token in text.split() if token != "XX"}
    assert delinearise(text, tree.leaves()) == (untagged(tree), False)


@settings(max_examples=300)  # most are far from a tree
@given(st.lists(TOKENS, max_size=20), WORDS)
@example(["(S", "(NP", "XX", ")NP", "XX", ")S"], ["a", "b"])
def test_any_tokens_give_a_tree_over_the_words(tokens: list[str], sentence_words: list[str]) -> None:
    text = " ".join(tokens)
    tree, repaired = delinearise(text, sentence_words)
    check_over(tree, sentence_words)
    assert {tag for _, tag in tree.pos()} == {"XX"}
    assert repaired is not is_well_formed(text, len(sentence_words))
    if not repaired:
        assert linearise(tree) == text
    assert delinearise(linearise(tree), sentence_words) == (tree, False)


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        # closing tokens: of an outer constituent, of none
        ("(S (NP XX (PP XX )S", "(S (NP (XX a) (PP (XX b))))"),
        ("(S (NP XX (NP XX )NP )S", "(S (NP (XX a) (NP (XX b))))"),
        ("(S XX )VP XX )S", "(S (XX a) (XX b))"),
        (")S (S XX XX )S )S", "(S (XX a) (XX b))"),
        # constituents without words
        ("(S (NP )NP XX XX )S", "(S (XX a) (XX b))"),
        ("(S (NP (NP )NP )NP XX XX )S", "(S (XX a) (XX b))"),
        ("(S XX XX )S (S", "(S (XX a) (XX b))"),
        ("(S )S", "(TOP (XX a) (XX b))"),
        # words too many, words missing
        ("(S XX (VP XX XX )VP XX )S", "(S (XX a) (VP (XX b)))"),
        ("(S XX XX (VP XX )VP )S", "(S (XX a) (XX b))"),
        ("(S (NP XX )NP", "(S (NP (XX a)) (XX b))"),
        ("(S (NP XX", "(S (NP (XX a) (XX b)))"),
        ("(S XX )S", "(TOP (S (XX a)) (XX b))"),
        # nothing closed
        ("(S (NP XX (VP XX", "(S (NP (XX a) (VP (XX b))))"),
        # several trees, or none
        ("(S XX )S (NP XX )NP", "(TOP (S (XX a)) (NP (XX b)))"),
        ("XX (NP XX )NP", "(TOP (XX a) (NP (XX b)))"),
        ("XX XX", "(TOP (XX a) (XX b))"),
        ("", "(TOP (XX a) (XX b))"),
        # what is no token, and any spaces
        ("  (S XX\t XX )S \n )S", "(S (XX a) (XX b))"),
        ("(S XX the XXX ( ) XX )S", "(S (XX a) (XX b))"),
        ("(S ((NP XX )(NP XX )S", "(S (XX a) (XX b))"),
        ("(S (N)P XX )N)P XX )S", "(S (XX a) (XX b))"),
    ],
)
def test_repair(text: str, repaired: str) -> None:
    assert delinearise(text, ["a", "b"]) == (parse(repaired), True)


@pytest.mark.parametrize("end", ["", " XX XX", " XX XX )NP", " XX XX" + " )NP" * 2000, " XX" + " )NP" * 2000])
def test_a_tree_of_endless_openings_can_be_walked(end: str) -> None:
    tree, repaired = delinearise("(NP " * 2000 + end, ["a", "b"])
    assert repaired
    check_over(tree, ["a", "b"])


def test_a_tree_far_deeper_than_treebanks_have_comes_back() -> None:
    depth = MAX_DEPTH - 2  # there is room for a TOP and the word's tag
    tree = parse("(NP " * depth + "(XX a)" + ")" * depth)
    assert delinearise(linearise(tree), ["a"]) == (tree, False)


def test_a_tree_needs_words() -> None:
    with pytest.raises(ValueError, match="needs words"):
        delinearise("(S XX )S", [])


@pytest.mark.parametrize(
    ("treebank", "files", "least"),
    [
        ("ptb_sample", "*.mrg", 3_000),
        pytest.param("craft", "*.tree", 25_000, marks=[pytest.mark.slow, pytest.mark.nightly]),
        pytest.param("gum", "*/*.ptb", 10_000, marks=[pytest.mark.slow, pytest.mark.nightly]),
    ],
)
def test_every_tree_of_a_treebank_comes_back(treebank: str, files: str, least: int) -> None:
    if not (TREEBANKS / treebank).is_dir():
        pytest.skip(f"no treebank beside the checkout: {treebank}")
    count = 0
    for path in sorted((TREEBANKS / treebank).glob(files)):
        for tree in read_trees(path):
            back, repaired = delinearise(linearise(tree), tree.leaves())
            assert not repaired
            assert bracketing(back) == bracketing(untagged(tree))
            count += 1
    assert count >= least
