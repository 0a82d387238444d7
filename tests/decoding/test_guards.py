"""Guards: no n-gram twice, tokens that the output has already, and lengths; off, they change nothing."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.guards import Guards
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.sampling import Sampler
from t2t_revival.errors import T2TError
from tests.support import tiny_models
from tests.support.tiny_models import EOS, PAD, TINY, logits_of, trimmed

VOCAB = 9
SOURCES = np.array([[3, 2, 4, 5, 1], [7, 6, 1, 0, 0]])
LENGTHS = [4, 2]  # without EOS
tiny = functools.partial(tiny_models.tiny, hparams=TINY.replace(num_hidden_layers=1))


@functools.cache
def searching(model, **guards):
    return BeamSearch(model, guards=Guards(**guards))


def outputs(model, beam_size=4, extra_length=12, prefixes=None, **guards):
    how = {"beam_size": beam_size, "extra_length": extra_length, "n": beam_size, "prefixes": prefixes}
    ids, scores = searching(model, **guards)(SOURCES, **how)
    return [
        [trimmed(output) for output, score in zip(*row, strict=True) if score > -np.inf]
        for row in zip(ids.numpy(), scores.numpy(), strict=True)
    ]


def ngrams(output, n):
    return [tuple(output[place : place + n]) for place in range(len(output) - n + 1)]


def repeating_by_hand(seq, n, vocab):
    """Tokens after which an n-gram of `seq` would be there twice, bool [vocab]."""
    return np.array(
        [
            token in seq
            and ngrams([*seq, token], n)[-1:] != []
            and ngrams([*seq, token], n)[-1] in ngrams(seq, n)
            for token in range(vocab)
        ]
    )


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 12).flatmap(
        lambda length: st.lists(
            st.lists(st.integers(2, 5), min_size=length, max_size=length), min_size=4, max_size=4
        )
    ),
    st.integers(1, 4),
)
def test_tokens_that_would_repeat_an_ngram(rows, n):
    seq = np.array(rows, np.int32).reshape(2, 2, -1)
    logits = np.zeros((2, 2, 7), np.float32)
    _, allowed = Guards(no_repeat_ngram_size=n)(logits, tf.constant(seq), np.zeros((2, 1)), None)
    for place in itertools.product(range(2), range(2)):
        expected = ~repeating_by_hand(seq[place].tolist(), n, 7)
        expected[PAD] = False
        np.testing.assert_array_equal(allowed[place], expected)


def test_the_penalty_of_tokens_that_are_there():
    logits = np.array([[[2.0, -1.0, 4.0, -4.0, 0.5]]], np.float32)
    seq = tf.constant([[[2, 3, 3]]])
    found, allowed = Guards(repetition_penalty=2.0)(logits, seq, np.zeros((1, 1)), None)
    np.testing.assert_array_equal(found[0, 0], [2.0, -1.0, 2.0, -8.0, 0.5])
    assert allowed is None


def test_what_must_come_comes_even_if_it_repeats():
    seq, forced = tf.constant([[[4, 4]]]), np.arange(7)[None, None] == 4
    logits = np.zeros((1, 1, 7), np.float32)
    _, allowed = Guards(no_repeat_ngram_size=1)(logits, seq, np.zeros((1, 1)), forced)
    np.testing.assert_array_equal(allowed, forced)


@pytest.mark.slow
@pytest.mark.parametrize(("beam_size", "n"), [(1, 1), (4, 1), (1, 2), (4, 2)])
def test_no_output_has_an_ngram_twice(beam_size, n):
    model, _ = tiny(VOCAB, seed=4)
    free = outputs(model, beam_size, min_length_ratio=1.5)
    assert any(len({*ngrams(output, n)}) < len(ngrams(output, n)) for row in free for output in row)
    for output in itertools.chain(*outputs(model, beam_size, no_repeat_ngram_size=n, min_length_ratio=1.5)):
        output = output[: output.index(EOS)] if EOS in output else output
        assert len({*ngrams(output, n)}) == len(ngrams(output, n))


@pytest.mark.slow
@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize(("least", "most"), [(0.0, 0.5), (1.0, 1.5), (2.0, 2.0), (3.0, 0.0)])
def test_lengths_by_the_source(beam_size, least, most):
    model, _ = tiny(VOCAB, seed=5)
    found = outputs(model, beam_size, min_length_ratio=least, max_length_ratio=most)
    for length, row in zip(LENGTHS, found, strict=True):
        for output in row:
            tokens = len(output) - (EOS in output)
            assert tokens >= np.ceil(least * length)
            assert tokens <= (np.ceil(most * length) + (EOS not in output) if most else length + 13)


@pytest.mark.slow
def test_greedy_search_with_a_penalty_is_that_of_numpy():
    model, _ = tiny(VOCAB, seed=4)
    expected = []
    while len(expected) < 15 and EOS not in expected:
        logits = logits_of(model, SOURCES[:1], [[*expected, EOS]])[0, -1].copy()
        for token in {*expected}:
            logits[token] *= 1 / 1.7 if logits[token] > 0 else 1.7
        logits[PAD] = -np.inf
        expected.append(int(logits.argmax()))
    assert outputs(model, 1, 10, repetition_penalty=1.7)[0] == [expected]
    assert outputs(model, 1, 10)[0] != [expected]


@pytest.mark.slow
def test_guards_that_are_off_change_nothing():
    model, _ = tiny(VOCAB, seed=4)
    ids, scores = BeamSearch(model)(SOURCES, n=4)
    found = searching(model)(SOURCES, n=4)
    np.testing.assert_array_equal(found[0], ids)
    np.testing.assert_array_equal(found[1], scores)
    assert Guards.of(DecodeHParams()) is None


@pytest.mark.slow
def test_prefixes_stay(monkeypatch):
    model, _ = tiny(VOCAB, seed=4)
    prefixes = [[4, 4, 4], [5, 0, 0]]
    found = outputs(model, prefixes=prefixes, no_repeat_ngram_size=1, max_length_ratio=0.5)
    assert all(output[:3] == [4, 4, 4] for output in found[0])
    assert all(output[:1] == [5] for output in found[1])


@pytest.mark.slow
def test_samples_have_guards_too():
    model, _ = tiny(VOCAB, seed=4, scale=0.5)
    guards = Guards(no_repeat_ngram_size=1, min_length_ratio=1.0)
    ids, _ = Sampler(model, guards=guards)(SOURCES, [1, 2], extra_length=12, n=20)
    for length, row in zip(LENGTHS, ids.numpy(), strict=True):
        for output in map(trimmed, row):
            assert len({*output}) == len(output)
            assert len(output) - 1 >= length


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no_repeat_ngram_size=-1", "no_repeat_ngram_size=-1 must be between 0 and 100"),
        ("repetition_penalty=0", "repetition_penalty=0.0 must be between 0.01 and 100"),
        ("repetition_penalty=nan", "repetition_penalty=nan must be between"),
        (
            "min_length_ratio=2,max_length_ratio=1",
            "min_length_ratio=2.0 must be at most max_length_ratio=1.0",
        ),
        ("constrained=True,no_repeat_ngram_size=3", "no_repeat_ngram_size is for text: leave it out"),
    ],
)
def test_wrong_settings(text, message):
    with pytest.raises(T2TError, match=message):
        DecodeHParams.parse(text)
