"""Phrases of requests, and whole words in texts, as Python has them."""

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.decoding.lexical_constraints import count
from t2t_revival.decoding.phrases import joins
from t2t_revival.serving.lexical.texts import are_joining, first_places, has_phrase, split_phrases

LETTERS = st.text(st.sampled_from("ab .-é犬1\u0301"), min_size=1, max_size=8)


def test_phrases_of_lines():
    lines = ["Hund\n den  Hund \r\n\n\u3000a\rb", "", "\n \n", b"\xff"]
    found = split_phrases(tf.constant(lines)).numpy()
    expected = [["Hund", "den  Hund", "a b"], ["", "", ""], ["", "", ""], ["\ufffd", "", ""]]
    assert [[text.decode() for text in row] for row in found] == expected
    assert split_phrases(tf.constant([""])).shape == (1, 1)


def test_repetitions_and_pairs():
    is_first, equal = first_places(tf.constant([["a", "b", "a", ""]]))
    assert is_first.numpy().tolist() == [[True, True, False, False]]
    assert np.argwhere(equal.numpy()[0]).tolist() == [[0, 0], [0, 2], [1, 1], [2, 0], [2, 2]]


@settings(max_examples=25, deadline=None)
@given(
    text=st.text(st.sampled_from("ab .-é犬1\u0301"), max_size=12),
    phrases=st.lists(LETTERS, min_size=2, max_size=2),
)
def test_whole_words(text, phrases):
    found = has_phrase(tf.constant([text, "a"]), tf.constant([phrases, ["", "a"]])).numpy()
    assert found.tolist() == [[count(phrase, text) > 0 for phrase in phrases], [False, True]]


def test_characters_that_form_words():
    codes = [code for code in range(0x3200) if not 0xD800 <= code < 0xE000]
    expected = [joins(chr(code)) for code in codes]
    assert are_joining(tf.constant(codes)).numpy().tolist() == expected
