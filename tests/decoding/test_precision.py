"""bfloat16 and int8 on TensorFlow: search, samples and scores are those of one set of weights."""

import keras
import numpy as np
import pytest

from t2t_revival import T2TError, Transformer, Translator
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.model.products import replace_matrices
from tests.support.int8_in_float32 import assign_multiples
from tests.support.searches import Samples, ensemble, score, search
from tests.support.tiny_models import TINY

PIECES = ("<pad>", "</s>", "<unk>", "XX▁", "(NP▁", ")NP▁", "(S▁", ")S▁", "▁", "a", "▁b", "c")
SOURCES = [[9, 10, 11, 1], [10, 1]]
INT8 = EngineConfig(precision="int8")


@pytest.fixture(scope="module")
def new_model():
    """Makes models with the same random weights: (number of tokens, precision)."""

    def make(vocab_size, precision="float32"):
        keras.utils.set_random_seed(5)
        weights = Transformer(TINY, vocab_size).get_weights()
        model = Transformer(TINY, vocab_size, dtype=precision)
        model.set_weights(weights)
        return model

    return make


def same(found, expected):
    for outputs, others in zip(found, expected, strict=True):
        assert [one.ids for one in outputs] == [one.ids for one in others]
        np.testing.assert_allclose([one.score for one in outputs], [one.score for one in others], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {"prefixes": [[10, 9], []]},
        {"trees": PIECES},
    ],
    ids=["text", "trees"],
)
def test_searches_in_int8_are_those_by_the_multiples(new_model, how):
    how = {"beams": 3, "extra": 4, "n": 3} | how
    found = search(new_model(len(PIECES)), SOURCES, int8=True, **how)
    expected = new_model(len(PIECES))
    with replace_matrices(assign_multiples(expected)):
        same(found, search(expected, SOURCES, **how))


@pytest.mark.nightly
@pytest.mark.slow
def test_samples_and_scores_in_int8_are_those_by_the_multiples(new_model):
    model, expected = new_model(len(PIECES)), new_model(len(PIECES))
    drawn = search(model, SOURCES, int8=True, samples=Samples(), alpha=0.0, extra=4)
    targets = [one.ids for (one,) in drawn]
    scored = score(model, SOURCES, targets, int8=True)
    np.testing.assert_allclose([one.score for (one,) in drawn], scored, rtol=1e-5)
    with replace_matrices(assign_multiples(expected)):
        np.testing.assert_allclose(scored, score(expected, SOURCES, targets), rtol=1e-4)
    in_float32 = score(model, SOURCES, targets)
    assert np.abs(in_float32 / scored - 1).max() > 2e-3, "the tolerance tells int8 from float32"


@pytest.mark.nightly
@pytest.mark.slow
def test_an_ensemble_in_int8_of_one_model_twice_decodes_as_the_model(new_model):
    model, how = new_model(len(PIECES)), {"int8": True, "beams": 3, "extra": 4, "n": 3}
    same(search(ensemble(model, model), SOURCES, **how), search(model, SOURCES, **how))


def test_weights_in_int8_are_not_replaced(new_model, vocabulary):
    translator = Translator(new_model(310), vocabulary, config=INT8)
    with pytest.raises(T2TError, match="weights in int8 do not change: load the checkpoint with Translator"):
        translator.load_checkpoint(None)


def test_a_model_of_another_precision_is_refused(new_model, vocabulary):
    with pytest.raises(T2TError, match="int8 is for a model in float32, not bfloat16"):
        Translator(new_model(310, "bfloat16"), vocabulary, config=INT8)
