"""Search for outputs that have given phrases: against all outputs there are, and with many random phrases."""

import itertools
from collections import Counter

import numpy as np
import pytest

from tests.support.search_engines import engines
from tests.support.searches import INSIDE, Phrases, search, trimmed
from tests.support.tiny_models import EOS, PAD, all_outputs, scores_of, tiny

FEW, VOCAB = 5, 11
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("engine", engines("phrases"))]


def occurrences(output, phrase, after="word"):
    """How often ids have a phrase, from left to right without overlap."""
    output, found, place = [*output, EOS], 0, 0
    while place + len(phrase) < len(output):
        end = place + len(phrase)
        if tuple(output[place:end]) == phrase and (after == "anything" or output[end] != INSIDE):
            found, place = found + 1, end
        else:
            place += 1
    return found


def meets(output, phrases):
    words = [token for token in output if token not in (PAD, EOS)]
    there = len(words) > 0 or not phrases.avoid
    for phrase, number in Counter(phrases.wanted).items():
        there &= occurrences(words, phrase, phrases.after) >= number
    return there and not any(occurrences(words, phrase, phrases.after) for phrase in phrases.avoid)


@pytest.mark.parametrize(
    ("wanted", "avoid"),
    [
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
    ],
)
def test_a_wide_beam_finds_the_best_of_all_outputs(engine, wanted, avoid):
    source, extra = [2, 3, 1], 3
    outputs = all_outputs(FEW, len(source) + extra)
    for seed, (after, alpha) in enumerate((("anything", 0.6), ("word", 0.0))):
        phrases = Phrases(wanted=wanted, avoid=avoid, after=after)
        allowed = outputs[[meets(output, phrases) for output in outputs]]
        model = tiny(FEW, seed)
        expected = scores_of(model, source, allowed, alpha)
        order = np.argsort(-expected)[:3]
        how = {"beams": 300, "alpha": alpha, "extra": extra, "n": 3}
        (found,) = search(model, [source], engine=engine, phrases=[phrases], **how)
        np.testing.assert_allclose([one.score for one in found], expected[order], rtol=1e-4)
        assert [one.ids for one in found] == [trimmed(row) for row in allowed[order]]


@pytest.mark.parametrize(("beams", "scale"), [(2, 0.5), (4, 3.0), (8, 0.5)])
def test_all_outputs_have_random_phrases(engine, beams, scale):
    rng = np.random.default_rng(beams)
    sources = [[3, 4, 10, 1], [5, 1], [2, 3, 4, 5, 6, 1]]
    for seed in range(8):
        model = tiny(VOCAB, seed, scale=scale)
        given = [
            Phrases(
                wanted=[
                    tuple(rng.integers(2, 6, rng.integers(1, 4)).tolist()) for _ in range(rng.integers(0, 4))
                ]
            )
            for _ in sources
        ]
        found = search(model, sources, engine=engine, phrases=given, beams=beams, extra=14, n=beams)
        for source, phrases, outputs in zip(sources, given, found, strict=True):
            assert outputs
            for one in outputs:
                assert one.ids[-1] == EOS
                assert meets(one.ids, phrases)
                assert one.score == pytest.approx(scores_of(model, source, [one.ids], 0.6)[0], rel=1e-4)


@pytest.mark.parametrize("ends", [True, False])
def test_phrases_that_only_just_fit_are_there(engine, ends):
    """Phrases may be in any order, and EOS is left out where there is no room for it."""
    phrases = Phrases(wanted=[(2, 3, 9), (5,), (3, 3)])
    model, how = tiny(VOCAB, seed=3, scale=0.5), {"beams": 3, "extra": 3 + ends, "n": 3}
    (found,) = search(model, [[5, 7, 1]], engine=engine, phrases=[phrases], **how)
    orders = [
        [token for phrase in order for token in phrase] for order in itertools.permutations(phrases.wanted)
    ]
    for one in found:
        assert (one.ids[-1] == EOS) == ends
        assert meets(one.ids, phrases)
        assert len(one.ids) == 6 + ends
        assert one.ids[:6] in orders


def test_an_avoided_phrase_may_begin_a_word_unless_it_is_avoided_at_once(engine):
    model, how = tiny(VOCAB, seed=6, scale=0.5), {"engine": engine, "extra": 6, "n": 4}
    (free,) = search(model, [[3, 2, 4, 1]], **how)
    token = next(token for one in free for token in one.ids if token not in (EOS, INSIDE))
    for after in ("word", "at once"):
        avoided = Phrases(avoid=[(token,)], after=after)
        for one in search(model, [[3, 2, 4, 1]], phrases=[avoided], **how)[0]:
            assert not occurrences(one.ids[:-1], (token,))
            assert after == "word" or token not in one.ids


def test_a_sentence_whose_outputs_are_all_forbidden_has_none(engine):
    phrases = [Phrases(wanted=[(2,)], avoid=[(2,)]), Phrases(wanted=[(3,)])]
    none, found = search(tiny(FEW, seed=1), [[3, 1], [2, 1]], engine=engine, phrases=phrases, extra=6, n=2)
    assert none == []
    assert found
    assert all(meets(one.ids, phrases[1]) for one in found)
