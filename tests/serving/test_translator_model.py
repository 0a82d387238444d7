"""A translator under the signatures of an export has its types, and answers as it does."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.serving.export import export
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.signatures import DEFAULT, NO_OUTPUT, WITH_OPTIONS
from t2t_revival.serving.translator_model import TranslatorModel

LINES = ["the dog sees 3 houses .", "", "cat", "der cat sees", "the dog sees 3 houses ."]
OPTIONS = {
    "beam_size": [4, 2, 1, 4, 3],
    "alpha": [0.6, 0.6, 0.0, 1.0, 0.6],
    "extra_length": [5, 2, 3, 5, 2],
    "n": [3, 1, 1, 4, 2],
}


@pytest.fixture(scope="module")
def translator(make_translator):
    return make_translator(DecodeHParams(beam_size=3, extra_length=5, return_beams=True), max_length=30)


@pytest.fixture(scope="module")
def model(translator):
    return TranslatorModel(translator)


def check(found, expected):
    assert found["outputs"] == expected["outputs"]
    np.testing.assert_allclose(found["scores"], expected["scores"], rtol=1e-4)


@pytest.mark.slow
def test_it_answers_as_an_export(translator, model, tmp_path):
    exported = FolderModel(export(translator, tmp_path, "m"))
    for signature, inputs in ((DEFAULT, {"inputs": LINES}), (WITH_OPTIONS, {"inputs": LINES, **OPTIONS})):
        check(model.predict(signature, inputs), exported.predict(signature, inputs))
        for side in ("inputs", "outputs"):
            own, other = (getattr(one.signature_defs[signature], side) for one in (model, exported))
            assert {name: info.dtype for name, info in own.items()} == {
                name: info.dtype for name, info in other.items()
            }


def test_outputs_that_a_line_has_not_are_filled_up(model):
    found = model.predict(WITH_OPTIONS, {"inputs": LINES, **OPTIONS})
    assert [len(row) for row in found["outputs"]] == [4] * 5
    assert found["outputs"][1] == [b""] * 4
    assert found["scores"][1] == [0.0] + [NO_OUTPUT] * 3
    assert found["scores"][2][1:] == [NO_OUTPUT] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam_size": [0]}, "beam_size=0 must be at least 1"),
        ({"n": [5]}, "n must be between 1 and beam_size: 5"),
        ({"n": [0]}, "n must be between 1 and beam_size: 0"),
        ({"tag": ["<2xx>"]}, "tag=<2xx> is none of the model's tags"),
    ],
)
def test_options_out_of_bounds(model, changes, message):
    inputs = {"inputs": ["cat"], **{name: values[:1] for name, values in OPTIONS.items()}, **changes}
    with pytest.raises(T2TError, match=message):
        model.predict(WITH_OPTIONS, inputs)


def test_types_of_a_signature(model):
    definition = model.signature_defs[WITH_OPTIONS]
    assert {*definition.inputs} == {"inputs", *OPTIONS}
    assert definition.inputs["alpha"].dtype == tf.float32.as_datatype_enum
    assert not definition.defaults
