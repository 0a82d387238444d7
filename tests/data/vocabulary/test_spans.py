"""Places of tokens in their text, and words that they are part of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival.data.vocabulary.spans import (
    match_words,
    split_words,
    token_spans,
    words_at_tokens,
    words_of_text,
    words_of_tokens,
)
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary

TEXTS = st.text(st.sampled_from("the dogs,.-'日é  \u00a0"), max_size=30)


@given(text=TEXTS)
def test_spans_are_the_text_in_order(either, text):
    tokens = token_spans(either, either.encode(text))
    parts = [tokens.text[slice(*span)] for span in tokens.spans]
    assert "".join(parts) == tokens.text


@given(text=TEXTS)
def test_each_word_has_its_characters_in_order(either, text):
    ids = either.encode(text)
    spans, numbers = words_of_text(token_spans(either, ids), text)
    assert spans == split_words(text)
    assert numbers == sorted(numbers)
    if text.split():
        assert len(numbers) == len(ids)
        assert set(numbers) <= set(range(len(spans)))


@given(text=TEXTS)
def test_words_are_divided_at_tokens_of_scripts_without_spaces(either, text):
    tokens = token_spans(either, either.encode(text))
    spans, numbers = words_at_tokens(tokens, tokens.text)
    assert numbers == sorted(numbers)
    for start, end in split_words(tokens.text):
        parts = [span for span in spans if start <= span.start < end]
        assert "".join(tokens.text[slice(*span)] for span in parts) == tokens.text[start:end]
        assert len(parts) == 1 or "日" in tokens.text[start:end]


def test_words_by_hand(subwords_file):
    vocabulary = SubwordVocabulary(subwords_file)
    ids = vocabulary.encode("the dogs, the dog")
    pieces = [vocabulary.pieces[token] for token in ids]
    assert pieces == ["the_", "dog", "s_", ", _", "the_", "dog", "_"]
    assert words_of_text(token_spans(vocabulary, ids), "the dogs, the dog").of_tokens == [0, 1, 1, 1, 2, 3, 3]


def test_the_mark_of_a_space_opens_a_word(vocabulary):
    ids = vocabulary.encode("zq xw")
    tokens = token_spans(vocabulary, ids)
    words = words_of_tokens(tokens, split_words(tokens.text))
    assert words[0] == 0
    assert words[-1] == 1
    second = next(place for place, token in enumerate(ids) if place and vocabulary.pieces[token][0] == "▁")
    assert words.index(1) == second


def test_what_a_vocabulary_does_not_read_has_no_tokens(vocabulary):
    ids = vocabulary.encode("the dog")
    assert set(words_of_text(token_spans(vocabulary, ids), "the dog sees the cat").of_tokens) == {0, 1}
    assert words_of_text(token_spans(vocabulary, []), "") == ([], [])


@pytest.mark.parametrize(
    ("words", "others", "expected"),
    [
        (["a", "b"], ["c", "d"], [0, 1]),
        (["1", "000", "km"], ["1\u00a0000", "km"], [0, 0, 1]),  # a space that people do not see as one
        (["½", "x"], ["1\u20442x"], [0, 0]),
        (["ab"], ["a", "b"], [1]),
        (["a", "b", "c"], [], [0, 0, 0]),
    ],
)
def test_words_that_a_vocabulary_has_split_or_joined(words, others, expected):
    assert match_words(words, others) == expected


@pytest.mark.parametrize("inner", ["\u00a0", "\u202f", "\u3000", "\u2028", "\x0b", "\x1c", "\x85"])
def test_only_spaces_and_tabs_are_borders_of_words(inner):
    assert [*map(tuple, split_words(f"a{inner}b\tc  d"))] == [(0, 3), (4, 5), (7, 8)]


def test_words_match_where_one_vanished_and_another_was_split():
    assert match_words(["Bonjour", ","], ["Bonjour\u00a0,", "\u200b"]) == [0, 0]
    assert match_words(["Bonjour", ",", "mon"], ["Bonjour\u00a0,", "mon"]) == [0, 0, 1]
