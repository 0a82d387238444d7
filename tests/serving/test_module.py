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
    """Checks that a row of the module's outputs, each text once, is the beginning of the n-best list."""
    columns = (found[name].numpy()[row] for name in ("outputs", "scores", "cut"))
    best: dict[str, tuple[float, bool]] = {}
    for text, score, cut in zip(*columns, strict=True):
        if score > np.float32(NO_OUTPUT):
            best.setdefault(text.decode(), (score, bool(cut)))
        else:
            assert (text, cut) == (b"", False)
    assert [*best] == [output.text for output in expected[: len(best)]]
    assert [cut for _, cut in best.values()] == [output.cut for output in expected[: len(best)]]
    scores = [output.score for output in expected[: len(best)]]
    np.testing.assert_allclose([score for score, _ in best.values()], scores, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:line 5")
def test_decoders_of_another_kind_are_served(make_translator):
    other = make_translator(OPTIONS, decoder_self_attention="ssru")
    found = ServingModule(other).translate(tf.constant(LINES))
    for row, expected in enumerate(other.nbest(LINES)):
        check(found, row, expected)
