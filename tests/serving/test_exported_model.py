"""Exported models return the translator's outputs over gRPC, over REST and in this process."""

import gc
import re
import shutil
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import DecodeHParams, T2TError, Translator
from t2t_revival.addons.ctranslate2.served import TranslatorModel
from t2t_revival.serving import client
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.signatures import DEFAULT, NO_OUTPUT, WITH_OPTIONS
from tests.support.exported import asking
from tests.support.forked import in_child
from tests.support.model_server import ModelServer, Servable, Side, texts

LINES = ["the dog sees 3 houses .", "", "cat", "Häuser 🦓"]
BAD = [
    "",
    " ",
    " \t \u3000",
    "x" * 10_000,
    "a\0b\0",
    "\x01\x1b[31m\x7f\x85",
    "a\nb\r\nc\u2028d",
    "👩‍👧🇩🇪",
    "שלום \u202e עולם",
    "\ufeff\ufffe\U0010ffff",
]
COLUMNS = {
    "beam_size": [4, 2, 1, 3],
    "alpha": [0.6, 0.6, 0.0, 1.0],
    "extra_length": [5, 2, 3, 5],
    "n": [3, 1, 1, 2],
}


@pytest.fixture(scope="module")
def model_server(exported_version):
    server = ModelServer(Servable("tiny", exported_version))
    yield server
    server.close()


@pytest.fixture(scope="module", params=["grpc", "rest", "folder", "translator"])
def model(request, model_server, served, translator):
    """The export, and the translator under its signatures."""
    if request.param in ("grpc", "rest"):
        return Side(model_server, request.param).model(name="tiny", timeout_secs=60)
    return served if request.param == "folder" else TranslatorModel(translator)


@pytest.mark.slow
def test_each_line_has_its_options_and_missing_outputs_are_filled_up(translator, model):
    found = model.predict(WITH_OPTIONS, {"inputs": LINES, **COLUMNS})
    for row, (line, n) in enumerate(zip(LINES, COLUMNS["n"], strict=True)):
        given = {name: values[row] for name, values in COLUMNS.items() if name != "n"}
        alone = Translator(translator.model, translator.vocabulary, DecodeHParams(**given), 30)
        (expected,) = alone.nbest([line], n)
        missing = 3 - len(expected)
        outputs = [client.text_of(text) for text in found["outputs"][row]]
        assert outputs == [output.text for output in expected] + [""] * missing
        scores = [output.score for output in expected] + [NO_OUTPUT] * missing
        np.testing.assert_allclose(found["scores"][row], scores, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:line 4")
def test_any_text_is_answered(translator, model):
    expected = texts(translator.nbest(BAD))
    assert texts(asking(model).nbest(BAD)) == expected
    assert [texts(asking(model).nbest([line]))[0] for line in BAD] == expected
    many = texts(asking(model, batch_size=1000).nbest(["", "cat"] * 500))
    assert many == texts(translator.nbest(["", "cat"])) * 500


@pytest.mark.slow
@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_random_text_is_answered(translator, served, text):
    assert texts(asking(served).nbest([text])) == texts(translator.nbest([text]))


@pytest.mark.slow
def test_no_lines(model):
    nothing = {"outputs": [], "scores": [], "truncated": [], "cut": []}
    assert model.predict(DEFAULT, {"inputs": []}) == nothing
    none = {name: [] for name in COLUMNS}
    assert model.predict(WITH_OPTIONS, {"inputs": [], **none}) == nothing


@pytest.mark.slow
@pytest.mark.parametrize("model", ["grpc", "folder"], indirect=True)  # JSON has no such strings
def test_bytes_that_are_no_text(translator, model):
    answer = model.predict(DEFAULT, {"inputs": [b"cat \xff\xfe", b"\xc3"]})
    expected = translator.translate(["cat \ufffd\ufffd", "\ufffd"])
    assert [text.decode() for (text,) in answer["outputs"]] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam_size": [4, 4]}, "beam_size must be a scalar, or have one value for each line; .* is: 2$"),
        ({"alpha": [[0.6, 0.6, 0.6]]}, "alpha must be a scalar, or have one value for .* is: 1 3$"),
        ({"n": []}, "n must be a scalar, or have one value for each line; .* is: 0$"),
        ({"beam_size": 0}, "beam_size must be between 1 and"),
        ({"beam_size": [0]}, "beam_size must be between 1 and"),
        ({"extra_length": [-1]}, "extra_length must be between 0 and"),
        ({"alpha": [float("nan")]}, "alpha must be between"),
        ({"n": [5]}, "n must be between 1 and beam_size"),
        ({"n": [0]}, "n must be between 1 and beam_size"),
    ],
)
def test_options_that_do_not_fit(served, changes, message):
    options = {"beam_size": [4], "alpha": [0.6], "extra_length": [5], "n": [1], **changes}
    with pytest.raises(T2TError, match=f": {message}"):
        served.predict(WITH_OPTIONS, {"inputs": LINES[:3], **options})


def guide_example():
    """The Python that docs/guides/serving.md shows for a SavedModel."""
    text = (Path(__file__).parents[2] / "docs" / "guides" / "serving.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "saved_model" in block]
    return code


@pytest.mark.slow
def test_the_python_of_the_guide(translator, exported_version, capsys):
    found = {}
    exec(guide_example().replace("export/VERSION", str(exported_version)), found)
    for answer, n in ((found["best"], 1), (found["more"], 2)):
        assert {name: (tensor.dtype.name, tuple(tensor.shape)) for name, tensor in answer.items()} == {
            "outputs": ("string", (2, n)),
            "scores": ("float32", (2, n)),
            "truncated": ("bool", (2,)),
            "cut": ("bool", (2, n)),
        }
    best = [[text.decode() for text in row] for row in found["best"]["outputs"].numpy()]
    assert best == texts(translator.nbest(["The old dog sleeps.", "A cat."]))
    assert capsys.readouterr().out.startswith(best[0][0])


@pytest.mark.slow
def test_a_forked_process_has_an_error_and_does_not_hang(served):
    said = in_child(lambda: served.predict(DEFAULT, {"inputs": ["the dog"]}))
    assert said.startswith("error: the model was loaded before this process was forked, and would hang")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lost", "message"),
    [
        ("[v2]", "assets.extra", r"1: TensorFlow loads no model from a path with .* in it: rename the fol"),
        ("moved", "variables", r"moved/1: cannot be loaded \("),
    ],
)
def test_a_folder_that_cannot_be_loaded(exported_version, tmp_path, name, lost, message):
    moved = shutil.copytree(exported_version, tmp_path / name / "1", ignore=shutil.ignore_patterns(lost))
    with pytest.raises(T2TError, match=message):
        FolderModel(moved)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "the input inputs is missing"),
        ({"inputs": ["the"], "input": ["the"]}, "serving_default has no input input"),
    ],
)
def test_wrong_inputs(served, inputs, message):
    with pytest.raises(T2TError, match=message):
        served.predict(DEFAULT, inputs)


@pytest.mark.slow
def test_a_model_that_is_dropped_leaves_nothing(exported_version):
    """TensorFlow keeps the functions of models that `tf.saved_model.load` has loaded, 57 and more of each."""

    def graphs():
        gc.collect()
        return sum(type(one).__name__ == "FuncGraph" for one in gc.get_objects())

    before = graphs()
    model = FolderModel(exported_version)
    assert model.predict(DEFAULT, {"inputs": ["the"]})["outputs"]
    session = weakref.ref(model._session)
    del model
    assert graphs() <= before
    assert session() is None


@pytest.mark.slow
def test_a_translator_has_the_types_of_an_export(translator, served):
    model = TranslatorModel(translator)
    for signature in (DEFAULT, WITH_OPTIONS):
        for side in ("inputs", "outputs"):
            own, other = (getattr(one.signature_defs[signature], side) for one in (model, served))
            assert {name: info.dtype for name, info in own.items()} == {
                name: info.dtype for name, info in other.items()
            }
        assert not model.signature_defs[signature].defaults


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam_size": [0]}, "beam_size=0 must be between 1 and 100"),
        ({"n": [5]}, "n must be between 1 and beam_size: 5"),
        ({"n": [0]}, "n must be between 1 and beam_size: 0"),
        ({"tag": ["<2xx>"]}, "tag=<2xx> is none of the model's tags"),
    ],
)
def test_options_that_a_translator_rejects(translator, changes, message):
    inputs = {"inputs": ["cat"], **{name: values[:1] for name, values in COLUMNS.items()}, **changes}
    with pytest.raises(T2TError, match=message):
        TranslatorModel(translator).predict(WITH_OPTIONS, inputs)
