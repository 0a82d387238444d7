"""Translation probabilities beside IBM model 1 in NumPy, sentence by sentence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.addons import lexicon
from t2t_revival.addons.lexicon import NULL, learn_translations, most_probable, translation_probabilities
from t2t_revival.data.examples import Pairs, Side

VOCAB = 9
SENTENCES = st.lists(st.integers(1, VOCAB - 1), min_size=1, max_size=6)
CORPUS = [([3, 4, 1], [5, 6, 1]), ([3, 7, 1], [5, 8, 1]), ([4, 4, 1], [6, 1]), ([7, 1], [8, 8, 5, 1])]


def side(sentences):
    return Side(
        np.array([piece for ids in sentences for piece in ids], np.int32),
        np.cumsum([0, *map(len, sentences)]).astype(np.int64),
    )


def pairs_of(corpus):
    return Pairs(side([source for source, _ in corpus]), side([target for _, target in corpus]))


def model_1(corpus, iterations):
    """Brown et al., 1993: expected counts of each pair of pieces, from how often they are together."""
    counts = np.zeros((VOCAB, VOCAB))
    for source, target in corpus:
        for e in [NULL, *source]:
            for f in target:
                counts[e, f] += 1
    for _ in range(iterations + 1):
        sums = counts.sum(axis=1, keepdims=True)
        table = np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)
        counts = np.zeros((VOCAB, VOCAB))
        for source, target in corpus:
            for f in target:
                likelihood = sum(table[e, f] for e in [NULL, *source])
                for e in [NULL, *source]:
                    counts[e, f] += table[e, f] / likelihood
    return table


@settings(max_examples=25, deadline=None)
@given(corpus=st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=8))
def test_probabilities_are_those_of_model_1(corpus):
    table = translation_probabilities(pairs_of(corpus), VOCAB).toarray()
    np.testing.assert_allclose(table, model_1(corpus, lexicon.ITERATIONS), atol=1e-4)


def test_a_target_vocabulary_of_its_own_has_a_size_of_its_own():
    expected = translation_probabilities(pairs_of(CORPUS), VOCAB)
    numbers = {1: 1, 3: 2, 4: 3, 7: 4}
    few = [([numbers[source] for source in sources], targets) for sources, targets in CORPUS]
    table = translation_probabilities(pairs_of(few), 5, target_vocab_size=VOCAB + 4)
    assert table.shape == (5, VOCAB + 4)
    np.testing.assert_allclose(table.toarray()[[4], :VOCAB], expected.toarray()[[7]], rtol=1e-5)
    best, frequent = learn_translations(pairs_of(few), 5, 3, 2, target_vocab_size=VOCAB + 4)
    assert best.shape == (5, 3)
    assert frequent.tolist() == [1, 5]


@pytest.mark.parametrize("entries", [1, 7, 30])
def test_blocks_change_nothing(monkeypatch, entries):
    expected = translation_probabilities(pairs_of(CORPUS), VOCAB).toarray()
    monkeypatch.setattr(lexicon, "MAX_PRODUCT", entries)
    np.testing.assert_allclose(
        translation_probabilities(pairs_of(CORPUS), VOCAB).toarray(), expected, rtol=1e-5
    )


def test_candidates_are_the_pieces_that_share_most_information(monkeypatch):
    """Piece 7 stands in all pairs and tells nothing of piece 2; 5 and 6 are with it more than by chance."""
    monkeypatch.setattr(lexicon, "CANDIDATES", 2)
    corpus = [([2], [5, 6, 7])] * 3 + [([2], [5, 7, 8])] + [([3], [4, 7, 8])] * 6
    table = translation_probabilities(pairs_of(corpus), VOCAB)
    assert np.flatnonzero(table.toarray()[2]).tolist() == [5, 6]
    assert np.flatnonzero(table.toarray()[3]).tolist() == [4, 8]


def test_the_most_probable_are_ordered_and_padded():
    table = translation_probabilities(pairs_of(CORPUS), VOCAB)
    best = most_probable(table, 6)
    assert best.shape == (VOCAB, 6)
    assert not best[NULL].any()
    assert not best[2].any()  # no source has it
    for source in (3, 4, 7):
        row, probabilities = best[source], table.toarray()[source]
        count = np.count_nonzero(probabilities)
        assert sorted(row[:count]) == np.flatnonzero(probabilities).tolist()
        assert np.all(np.diff(probabilities[row[:count]]) <= 0)
        assert not row[count:].any()
