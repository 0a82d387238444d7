"""The graph of strings of other decoders, and with a shortlist."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import DecodeHParams
from t2t_revival.decoding.translations import Translations
from t2t_revival.serving.export import export
from t2t_revival.serving.module import NO_OUTPUT, ServingModule

LINES = [
    "the dog sees 3 houses .",
    "",
    "cat",
    " \t \u3000",
    "der cat sees " * 20,
    "a\nb\r\nc",
    "ß 👩‍👧",
    "a\0b",
]
OPTIONS = DecodeHParams(beam_size=3, extra_length=5, return_beams=True)


@pytest.fixture(scope="module")
def translator(make_translator):
    return make_translator(OPTIONS)


def check(found, row, expected):
    """Checks that a row of the module's outputs is the translator's n-best list."""
    texts = [text.decode() for text in found["outputs"].numpy()[row]]
    scores = found["scores"].numpy()[row]
    assert texts[: len(expected)] == [output.text for output in expected]
    np.testing.assert_allclose(scores[: len(expected)], [output.score for output in expected], rtol=1e-4)
    assert (scores[len(expected) :] == np.float32(NO_OUTPUT)).all()
    assert set(texts[len(expected) :]) <= {""}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:line 5")
def test_decoders_of_another_kind_are_served(make_translator):
    other = make_translator(OPTIONS, decoder_self_attention="ssru", reverse_target=True)
    found = ServingModule(other).translate(tf.constant(LINES))
    for row, expected in enumerate(other.nbest(LINES)):
        check(found, row, expected)


@pytest.fixture(scope="module")
def shortlisted(make_translator, vocabulary):
    """A translator with shortlists of random translations, by line."""
    best = np.random.default_rng(0).integers(3, vocabulary.size, (vocabulary.size, 3)).astype(np.int32)
    best[0] = 0
    translations = Translations(best, np.array([5], np.int32), vocabulary.fingerprint)
    options = dataclasses.replace(OPTIONS, shortlist="by_line")
    return make_translator(options, translations=translations)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:line 5")
def test_a_shortlist_is_served_and_can_be_left_out(translator, shortlisted, tmp_path):
    loaded = tf.saved_model.load(str(export(shortlisted, tmp_path, "m"))).signatures
    assert set(loaded) == {
        "serving_default",
        "translate_with_options",
        "translate_with_shortlist",
        "translate_with_sampling",
        "translate_with_constraints",
        "score",
    }
    inputs = {"inputs": tf.constant(LINES), "beam_size": tf.constant([3]), "alpha": tf.constant([0.6])}
    inputs |= {"extra_length": tf.constant([5]), "n": tf.constant([3])}
    with_it, without = shortlisted.nbest(LINES), translator.nbest(LINES)
    assert [outputs[0].text for outputs in with_it] != [outputs[0].text for outputs in without]
    for signature, request, expected in (
        ("serving_default", {"inputs": inputs["inputs"]}, with_it),
        ("translate_with_shortlist", inputs, with_it),
        ("translate_with_options", inputs, without),
    ):
        found = loaded[signature](**request)
        for row, outputs in enumerate(expected):
            check(found, row, outputs)
