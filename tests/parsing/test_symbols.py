"""Tokens of linearised trees, and a vocabulary in which each is a piece."""

import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.parsing.symbols import symbols

LABELS = ["S", "SBAR", "SBARQ", "NP", "VP", "X", "XX", "TOP", "ADVP|PRT", "PRT|ADVP", "-LRB-", ",", '"', "''"]
ANY_LABEL = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="()"), min_size=1)


@given(st.lists(st.sampled_from(LABELS) | ANY_LABEL, max_size=12))
def test_no_symbol_is_the_beginning_of_another(labels: list[str]) -> None:
    found = symbols(labels)
    assert len(found) == 1 + 2 * len(set(labels))
    assert not any(one.startswith(other) for one, other in permutations(found, 2))
    assert all(token.split() == [token[:-1]] for token in found)


def test_symbols_are_the_same_whatever_the_order_of_labels() -> None:
    assert symbols(["NP", "S", "NP"]) == symbols({"S", "NP"}) == ["XX ", "(NP ", ")NP ", "(S ", ")S "]
    assert symbols([]) == ["XX "]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    text = [f"The {noun} sleeps ( again ) near XX houses ." for noun in ("dog", "cat", "horse")] * 9
    path = tmp_path_factory.mktemp("vocabulary") / "v.spm"
    return Vocabulary.train(text, path, 335, user_symbols=symbols(LABELS))


@given(st.lists(st.lists(st.sampled_from(symbols(LABELS)), max_size=12).map("".join), min_size=1, max_size=4))
def test_every_token_is_one_piece_whatever_its_neighbours(vocabulary: Vocabulary, texts: list[str]) -> None:
    """In Python and in the graph."""
    import tensorflow as tf

    ids = vocabulary.encode_batch(texts)
    pieces = [[vocabulary.decode([one]) for one in row] for row in ids]
    assert pieces == [re.findall(r"\S+ ", text) for text in texts]
    assert [vocabulary.decode(row) for row in ids] == texts
    ragged = vocabulary.graph.encode(tf.constant(texts))
    assert ragged.to_list() == ids
    assert [text.decode() for text in vocabulary.graph.decode(ragged).numpy()] == texts


def test_words_that_look_like_tokens_are_lossless(vocabulary: Vocabulary) -> None:
    import tensorflow as tf

    texts = ["XX dogs", "MAXX (S x )S", "XXX", "(NPdog )NPs", " (NP  XX"]
    ids = vocabulary.encode_batch(texts)
    assert [vocabulary.decode(row) for row in ids] == texts
    assert vocabulary.graph.encode(tf.constant(texts)).to_list() == ids
