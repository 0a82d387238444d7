"""Noise of words: its rates, its bounds, and what it depends on."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival.addons.back_translation.noise import BLANK, WordNoise

WORDS = st.lists(st.sampled_from(["the", "old", "dog", "sleeps", "in", "a", "garden"]), max_size=30)
NUMBERS = st.integers(1, 10**9)


@given(WORDS, NUMBERS, st.integers(1, 5), st.integers(0, 9))
def test_swaps_keep_the_words(words: list[str], number: int, swap: int, seed: int) -> None:
    noised = WordNoise(drop=0, blank=0, swap=swap, seed=seed).apply(" ".join(words), number)
    assert Counter(noised.split()) == Counter(words)


@given(st.integers(0, 60), NUMBERS, st.integers(1, 5))
def test_no_word_moves_further_than_swap(count: int, number: int, swap: int) -> None:
    noised = WordNoise(drop=0, blank=0, swap=swap).apply(" ".join(map(str, range(count))), number)
    assert all(abs(place - int(word)) <= swap for place, word in enumerate(noised.split()))


@given(WORDS, NUMBERS)
def test_without_swaps_the_order_stays(words: list[str], number: int) -> None:
    noised = WordNoise(drop=0.3, blank=0, swap=0).apply(" ".join(words), number).split()
    rest = iter(words)
    assert all(word in rest for word in noised), "a subsequence"


@given(WORDS, NUMBERS)
def test_one_word_stays_at_least(words: list[str], number: int) -> None:
    noised = WordNoise(drop=0.999).apply(" ".join(words), number)
    assert bool(noised) == bool(words)


def test_numbers_and_seeds_make_other_noise() -> None:
    line = " ".join(map(str, range(50)))
    noised = {WordNoise(seed=seed).apply(line, number) for seed in range(3) for number in (1, 2, 11, 12)}
    assert len(noised) == 12


def test_the_default_rates_are_those_of_edunov() -> None:
    lines = [" ".join(["word"] * 20)] * 1000
    noised = [WordNoise().apply(line, number).split() for number, line in enumerate(lines)]
    words = sum(map(len, noised))
    blanks = sum(line.count(BLANK) for line in noised)
    assert words / 20_000 == pytest.approx(0.9, abs=0.01)
    assert blanks / words == pytest.approx(0.1, abs=0.01)
    moved = WordNoise(drop=0, blank=0).apply(" ".join(map(str, range(1000))), 1).split()
    assert max(abs(place - int(word)) for place, word in enumerate(moved)) == 3


def test_settings_are_parsed_and_shown() -> None:
    assert WordNoise.parse("") == WordNoise(0.1, 0.1, 3, 0)
    assert WordNoise.parse("swap=2, seed=7") == WordNoise(0.1, 0.1, 2, 7)
    assert WordNoise.parse(str(WordNoise(0.2, 0.0, 5, 1))) == WordNoise(0.2, 0.0, 5, 1)
