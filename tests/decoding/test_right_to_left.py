"""Models with reversed targets: tokens are reversed for the model only, and what cannot be is refused."""

from __future__ import annotations

import numpy as np
import pytest

from t2t_revival import DecodeHParams, HParams, T2TError, Translator
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.right_to_left import reverse
from tests.support.tiny_models import TINY, log_probs_of, tiny

BACKWARDS = TINY.replace(reverse_target=True)
LINES = ["the dog sees 3 houses", "the cat"]
OUTPUTS = ["der dog . houses 7", "cat"]
PAIRS = list(zip(LINES, OUTPUTS, strict=True))


def translator(vocabulary, options=None, hparams=BACKWARDS, **settings):
    """A translator with random weights, which are those of every other model of this size."""
    model = tiny(vocabulary.size, seed=1, hparams=hparams)
    return Translator(model, vocabulary, options, **settings)


def oracle(model, source, target):
    """The sum over the reversed tokens of an output and its EOS, by the logits of the whole model."""
    backwards = [*target[-2::-1], 1]
    return log_probs_of(model, source, [backwards])[0].sum()


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([[5, 6, 7, 1, 0, 0]], [[7, 6, 5, 1, 0, 0]]),
        ([[5, 1], [1, 0]], [[5, 1], [1, 0]]),
        ([[5, 6, 7]], [[7, 6, 5]]),
        ([[[5, 6, 1, 0], [4, 3, 2, 1]]], [[[6, 5, 1, 0], [2, 3, 4, 1]]]),
        (np.zeros((2, 3, 0), int), np.zeros((2, 3, 0), int)),
    ],
)
def test_what_stands_before_the_end_is_reversed(ids, expected):
    np.testing.assert_array_equal(reverse(ids), expected)


def test_the_score_of_an_output_is_that_of_its_reversed_tokens(vocabulary):
    own = translator(vocabulary)
    scores = own.score(PAIRS)
    ids = [(own.encode(line), own.encode(output, is_output=True)) for line, output in PAIRS]
    expected = [oracle(own.model, *pair) for pair in ids]
    np.testing.assert_allclose([score.log_prob for score in scores], expected, rtol=1e-4)
    assert [score.tokens for score in scores] == [len(target) for _, target in ids]
    forwards = translator(vocabulary, hparams=TINY).score(PAIRS)
    assert abs(forwards[0].log_prob - scores[0].log_prob) > 0.1


def test_samples_are_those_of_a_model_that_writes_forwards(vocabulary):
    how = DecodeHParams(sampling_method="random", random_seed=3, extra_length=3, token_scores=True)
    found, expected = (
        [token.piece for token in one.nbest(["the cat"])[0][0].details.tokens if token.piece != "<EOS>"]
        for one in (translator(vocabulary, how), translator(vocabulary, how, TINY))
    )
    assert found == expected[::-1]
    assert len(found) > 2


def test_details_are_in_the_order_of_the_text(vocabulary):
    own = translator(vocabulary, DecodeHParams(token_scores=True, alternatives=2, extra_length=9))
    score = own.score([(LINES[0], OUTPUTS[0])])[0]
    source, target = own.encode(LINES[0]), own.encode(OUTPUTS[0], is_output=True)
    backwards = log_probs_of(own.model, source, [[*target[-2::-1], 1]])[0]
    expected = [*backwards[-2::-1], backwards[-1]]
    assert [token.piece for token in score.details.tokens[:-1]] == [vocabulary.pieces[t] for t in target[:-1]]
    np.testing.assert_allclose([token.log_prob for token in score.details.tokens], expected, rtol=1e-3)
    assert [word.text for word in score.details.words] == OUTPUTS[0].split()
    assert len(score.details.tokens[0].alternatives) == 2


def test_what_is_refused(vocabulary):
    own = translator(vocabulary)
    with pytest.raises(T2TError, match="a model with reverse_target does not support forced beginnings"):
        own.nbest(LINES, prefixes=["der", ""])
    with pytest.raises(T2TError, match="does not support alignments: it writes an output from its end"):
        translator(vocabulary, alignment_heads=AlignmentHeads(1, (1,), shifted=True))


@pytest.mark.parametrize(
    ("others", "fault"),
    [
        ({"guided_alignment_weight": 0.1}, "cannot be combined with reverse_target: leave one out"),
        ({"deterministic_attention": True}, "leave out reverse_target"),
    ],
)
def test_hparams_that_cannot_be_combined(others, fault):
    with pytest.raises(T2TError, match=fault):
        HParams(reverse_target=True, **others)
