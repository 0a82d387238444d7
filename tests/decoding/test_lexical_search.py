"""Search for outputs that have given phrases: against all outputs there are, and with many random phrases."""

import functools
import itertools
from collections import Counter

import numpy as np
import pytest

from t2t_revival.decoding.lexical_search import LexicalSearch
from t2t_revival.decoding.lexical_tables import LineAutomata, Unit, tables_of
from t2t_revival.decoding.phrases import ANYTHING, AT_ONCE, BOUNDARY, Form, automaton
from tests.support.tiny_models import EOS, PAD, all_outputs, scores_of, tiny, trimmed

FEW, VOCAB = 5, 11
INSIDE = 4  # a token that continues the word before it


class AnySpelling:
    """Classes of tokens without a vocabulary."""

    closing = PAD

    def __init__(self, vocab):
        self.classes = np.full(vocab, 3, np.int32)
        self.classes[INSIDE] = 1

    def automaton(self, forms):
        return automaton(forms, self)


@functools.cache
def compiled(loop):
    return LexicalSearch(loop, AnySpelling(loop.model.vocab_size))


def units(phrases, avoid=(), after=BOUNDARY):
    wanted = [Unit((Form(phrase, after=after),), number) for phrase, number in Counter(phrases).items()]
    return [*wanted, *(Unit((Form(phrase, after=after),), 0) for phrase in avoid)]


def decode(search, sources, lines, beams=4, alpha=0.6, extra=6, n=1):
    """Outputs of sentences, each of them with its score; none where the search finds none."""
    width = max(map(len, sources))
    rows = np.array([source + [PAD] * (width - len(source)) for source in sources], np.int32)
    lexical = compiled(search.loop)
    automata = [LineAutomata(line, lexical.spelling) for line in lines]
    tables = tables_of(automata, [len(source) + extra for source in sources])
    ids, scores = lexical(rows, tables, beams, alpha, extra, n)
    return [
        [(trimmed(output), float(score)) for output, score in zip(*row, strict=True) if score > -np.inf]
        for row in zip(ids.numpy(), scores.numpy(), strict=True)
    ]


def occurrences(output, phrase, after=BOUNDARY):
    """How often ids have a phrase, from left to right without overlap."""
    output, found, place = [*output, EOS], 0, 0
    while place + len(phrase) < len(output):
        end = place + len(phrase)
        if tuple(output[place:end]) == phrase and (after == ANYTHING or output[end] != INSIDE):
            found, place = found + 1, end
        else:
            place += 1
    return found


def meets(output, phrases, avoid=(), after=BOUNDARY):
    words = [token for token in output if token not in (PAD, EOS)]
    there = len(words) > 0 or not avoid
    there &= all(occurrences(words, phrase, after) >= number for phrase, number in Counter(phrases).items())
    return there and not any(occurrences(words, phrase, after) for phrase in avoid)


CASES = [
    ([(2,)], []),
    ([(2,), (2,)], []),
    ([(2, 3), (3, 2)], []),
    ([(2, 3), (2, 2)], []),
    ([(3, 3, 2)], []),
    ([(2, 2), (2,)], []),
    ([(2, 4), (3,)], []),
    ([(2, 3, 2), (2,)], [(3, 3)]),
    ([], [(2,), (3, 4)]),
    ([(4, 4, 3)], [(3, 2)]),
    ([], []),
]


@pytest.mark.slow
@pytest.mark.parametrize(("phrases", "avoid"), CASES)
@pytest.mark.parametrize("after", [ANYTHING, BOUNDARY])
@pytest.mark.parametrize("alpha", [0.6, 0.0])
def test_a_wide_beam_finds_the_best_of_all_outputs(phrases, avoid, after, alpha):
    source, extra = [2, 3, 1], 3
    outputs = all_outputs(FEW, len(source) + extra)
    allowed = outputs[[meets(output, phrases, avoid, after) for output in outputs]]
    for seed in range(3):
        model, search = tiny(FEW, seed)
        expected = scores_of(model, source, allowed, alpha)
        order = np.argsort(-expected)[:3]
        (found,) = decode(search, [source], [units(phrases, avoid, after)], 300, alpha, extra, n=3)
        np.testing.assert_allclose([score for _, score in found], expected[order], rtol=1e-4)
        assert [ids for ids, _ in found] == [trimmed(row) for row in allowed[order]]


@pytest.mark.slow
@pytest.mark.parametrize(("beams", "scale"), [(2, 0.5), (4, 3.0), (8, 0.5)])
def test_all_outputs_have_random_phrases(beams, scale):
    rng = np.random.default_rng(beams)
    sources = [[3, 4, 10, 1], [5, 1], [2, 3, 4, 5, 6, 1]]
    for seed in range(8):
        model, search = tiny(VOCAB, seed, scale=scale)
        given = [
            [tuple(rng.integers(2, 6, rng.integers(1, 4)).tolist()) for _ in range(rng.integers(0, 4))]
            for _ in sources
        ]
        outputs = decode(search, sources, [units(phrases) for phrases in given], beams, extra=14, n=beams)
        for source, phrases, row in zip(sources, given, outputs, strict=True):
            assert row
            for ids, score in row:
                assert ids[-1] == EOS
                assert meets(ids, phrases)
                assert score == pytest.approx(scores_of(model, source, np.array([ids]), 0.6)[0], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_phrases_that_only_just_fit_are_there(ends):
    """Phrases may be in any order, and EOS is left out where there is no room for it."""
    _, search = tiny(VOCAB, seed=3, scale=0.5)
    phrases = [(2, 3, 9), (5,), (3, 3)]
    (found,) = decode(search, [[5, 7, 1]], [units(phrases)], beams=3, extra=3 + ends, n=3)
    for ids, _ in found:
        assert (ids[-1] == EOS) == ends
        assert meets(ids, phrases)
        assert len(ids) == 6 + ends
    orders = [[token for phrase in order for token in phrase] for order in itertools.permutations(phrases)]
    assert all(ids[:6] in orders for ids, _ in found)


@pytest.mark.slow
def test_a_sentence_without_phrases_is_decoded_as_without_constraints():
    _, search = tiny(VOCAB, seed=6, scale=0.5)
    sources = [[3, 4, 10, 1], [5, 1, 0, 0]]
    ids, scores = search(sources, 3, 0.6, 5, n=3)
    outputs = decode(search, sources, [[], units([(7, 8), (2,)])], 3, 0.6, 5, n=3)
    assert [output for output, _ in outputs[0]] == [trimmed(row) for row in ids[0]]
    np.testing.assert_allclose([score for _, score in outputs[0]], scores[0], rtol=1e-4)


@pytest.mark.slow
def test_an_avoided_phrase_may_begin_a_word_unless_it_is_avoided_at_once():
    _, search = tiny(VOCAB, seed=6, scale=0.5)
    sources = [[3, 2, 4, 1]]
    ids, _ = search(sources, 4, 0.6, 6, n=4)
    token = next(token for token in ids.numpy().ravel() if token not in (PAD, EOS, INSIDE))
    for after in (BOUNDARY, AT_ONCE):
        for ids, _ in decode(search, sources, [units([], [(token,)], after)], n=4)[0]:
            assert not occurrences(ids[:-1], (token,), BOUNDARY)
            assert after == BOUNDARY or token not in ids


@pytest.mark.slow
def test_a_sentence_whose_outputs_are_all_forbidden_has_none():
    _, search = tiny(FEW, seed=1)
    found = decode(search, [[3, 1], [2, 1]], [units([(2,)], [(2,)]), units([(3,)])], n=2)
    assert found[0] == []
    assert all(meets(ids, [(3,)]) for ids, _ in found[1])
