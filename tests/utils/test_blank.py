"""Blank text: what leaves nothing visible, in Python and in TensorFlow's graph."""

import sys
import unicodedata

import pytest

from t2t_revival.utils.blank import is_blank


@pytest.mark.parametrize(
    "text", ["", " \t", "\u200b", "\ufeff", "\u00ad", "\u00a0\u2060 \u200d", "\u2028", "\x1b", "\ufe0f"]
)
def test_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a\u200b", "\ufeff.", "\u0600", "\u06dd", "\u0301", "\U0001f600"])
def test_visible(text):
    assert not is_blank(text)


def test_white_space_and_controls_are_blank():
    every = map(chr, range(sys.maxunicode + 1))
    assert all(is_blank(one) for one in every if one.isspace() or unicodedata.category(one) in ("Zs", "Cc"))


def test_the_graph_agrees():
    import tensorflow as tf

    from t2t_revival.serving.text_inputs import BLANK

    codes = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    found = tf.strings.regex_full_match([chr(code) for code in codes], BLANK).numpy()
    assert [code for code, blank in zip(codes, found, strict=True) if blank != is_blank(chr(code))] == []
