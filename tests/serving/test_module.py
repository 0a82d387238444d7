"""The graph of strings of other decoders."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import DecodeHParams
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
