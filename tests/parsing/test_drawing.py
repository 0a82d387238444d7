"""Drawings of trees for the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival.parsing.trees import draw_tree, parse

EXPECTED = """\
             S
     ┌───────┴────┬───────┐
     │            VP      │
     │       ┌────┴───┐   │
     NP      │        NP  │
 ┌───┴───┐   │        │   │
The     dog sees      it  ."""
WIDE = 10_000
WORDS = st.sampled_from(["The", "dog", ".", ",", "-LRB-", "sees"]).map(lambda word: f"(XX {word})")
TREES = st.recursive(
    WORDS,
    lambda inner: st.tuples(st.sampled_from(["S", "NP"]), st.lists(inner, min_size=1, max_size=4)).map(
        lambda node: f"({node[0]} {' '.join(node[1])})"
    ),
    max_leaves=12,
).map(lambda text: f"(S {text})")


@given(TREES)
def test_words_stand_in_their_order(text: str) -> None:
    """Keeps the order of words directly below a constituent, such as a full stop."""
    tree = parse(text)
    *_, last = draw_tree(tree, WIDE).splitlines()
    assert last.split() == tree.leaves()


def test_a_drawing() -> None:
    tree = parse("(S (NP (XX The) (XX dog)) (VP (XX sees) (NP (XX it))) (XX .))")
    assert draw_tree(tree, WIDE) == EXPECTED
    assert draw_tree(parse("(XX hi)"), WIDE).split() == ["XX", "│", "hi"]


def test_tags_other_than_the_placeholder_are_drawn() -> None:
    drawing = draw_tree(parse("(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)))"), WIDE)
    assert "DT" in drawing
    assert "VBZ" in drawing
    assert "XX" not in draw_tree(parse("(S (NP (XX The)))"), WIDE)


@pytest.mark.parametrize("width", [10, 30])
def test_a_tree_that_is_too_wide_is_bracketed(width: int) -> None:
    tree = parse("(S (NP (XX The) (XX old) (XX dog)) (VP (XX sleeps) (PP (XX in) (NP (XX it)))))")
    assert parse(draw_tree(tree, width)) == tree
