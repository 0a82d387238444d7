"""Texts from Python code, errors that name the place of what is no string, blank text, and sizes."""

import re
import sys
import unicodedata

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.errors import LineError
from t2t_revival.utils.texts import is_blank, pairs_of, readable_size, texts_of


class Column:
    """A column of a table, as of pandas."""

    ndim = 1

    def __init__(self, *values):
        self._values = values

    def __iter__(self):
        return iter(self._values)

    def __bool__(self):
        raise ValueError("ambiguous")


class Table(Column):
    """A table, which iterates over the names of its columns."""

    ndim = 2


@pytest.mark.parametrize(
    "values",
    [["a", "b"], ("a", "b"), (text for text in "ab"), np.array(["a", "b"]), Column("a", np.str_("b"))],
)
def test_lists_of_all_kinds(values):
    assert texts_of(values) == ["a", "b"]


@pytest.mark.parametrize(
    "values", ["ab", b"ab", None, 3, {"a": "b"}, {"a"}, np.array("ab"), np.array([["a"]]), Table("a")]
)
def test_what_is_no_list(values):
    with pytest.raises(T2TError, match=rf"^lines: .* is of type {type(values).__name__}: give a list$"):
        texts_of(values)


@pytest.mark.parametrize("item", [None, float("nan"), b"b", 1, ["b"], np.array(["b\n"] * 90)])
def test_an_item_that_is_no_string_is_named_by_its_line(item):
    with pytest.raises(LineError, match=r'^line 8: .* is not a string; "" is an empty line$') as raised:
        texts_of(["a", item], first=7)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "pairs", [[("a", "b")], [["a", "b"]], np.array([["a", "b"]]), (pair for pair in [("a", "b")])]
)
def test_pairs(pairs):
    assert pairs_of(pairs) == [("a", "b")]


@pytest.mark.parametrize(
    "pair", ["ab", ("a",), ("a", "b", "c"), ("a", None), (b"a", b"b"), None, {"a": "b", "c": "d"}, {"a", "b"}]
)
def test_what_is_no_pair(pair):
    shown = "{.*}" if isinstance(pair, set) else re.escape(repr(pair))
    with pytest.raises(
        LineError, match=rf"^line 2: {shown} is not a pair of strings: give \(source, output\)$"
    ):
        pairs_of([("a", "b"), pair])


def test_a_pair_is_no_list_of_pairs():
    with pytest.raises(LineError, match="line 1: 'a b' is not a pair"):
        pairs_of(("a b", "c d"))
    with pytest.raises(T2TError, match="pairs: 'ab' is of type str"):
        pairs_of("ab")


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


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (999.9, "1.0 kB"),
        (1_000, "1.0 kB"),
        (9_960, "10 kB"),
        (1_234_567, "1.2 MB"),
        (23_456_789, "23 MB"),
        (999_600_000, "1.0 GB"),
        (1.5e13, "15.0 TB"),
    ],
)
def test_sizes(size: float, text: str) -> None:
    assert readable_size(size) == text
