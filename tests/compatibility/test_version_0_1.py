"""A run and a SavedModel of version 0.1 load, and decode as before."""

import json
from pathlib import Path

import numpy as np
import pytest

from t2t_revival import Translator
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.training.checkpoints.directory import model_arrays, optimizer_arrays, restore
from t2t_revival.training.compile import build_model, compile_model
from t2t_revival.training.run import load_hparams, load_vocabulary

FOLDER = Path(__file__).parent / "translate_ende_0.1"
CHECKPOINT = FOLDER / "model.ckpt-400.npz"
SCORE_TOLERANCE = 1e-3  # float32 sums in another order, on another CPU

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def expected():
    return json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def translator():
    return Translator.load(FOLDER)


def test_weights_are_the_stored_ones_bit_for_bit(translator):
    with np.load(CHECKPOINT) as stored:
        names = {name for name in stored.files if name.startswith("model/")}
        loaded = model_arrays(translator.model)
        assert set(loaded) == names
        for name in names:
            np.testing.assert_array_equal(loaded[name], stored[name], err_msg=name)


def test_translator_decodes_as_it_did(translator, expected):
    found = translator.nbest(expected["lines"], n=4)
    assert [[output.text for output in outputs] for outputs in found] == [
        [output["text"] for output in outputs] for outputs in expected["outputs"]
    ]
    for outputs, old in zip(found, expected["outputs"], strict=True):
        np.testing.assert_allclose(
            [output.score for output in outputs],
            [output["score"] for output in old],
            atol=SCORE_TOLERANCE,
        )


def test_given_outputs_score_as_they_did(translator, expected):
    pairs = [
        (line, outputs[0]["text"])
        for line, outputs in zip(expected["lines"], expected["outputs"], strict=True)
        if line
    ]
    scores = [score.log_prob for score in translator.score(pairs)]
    np.testing.assert_allclose(scores, expected["log_probs"], atol=SCORE_TOLERANCE)


def test_training_resumes_with_weights_and_moments():
    hparams = load_hparams(FOLDER)
    model = compile_model(build_model(hparams, load_vocabulary(FOLDER).size), hparams)
    meta = restore(model, CHECKPOINT)
    assert meta["step"] == 400
    with np.load(CHECKPOINT) as stored:
        for name, array in {**model_arrays(model), **optimizer_arrays(model.optimizer)}.items():
            np.testing.assert_array_equal(array, stored[name], err_msg=name)


def test_saved_model_answers_as_it_did(expected):
    model = FolderModel(FOLDER / "saved_model")
    answer = model.predict("serving_default", {"inputs": [line.encode() for line in expected["lines"]]})
    texts = [outputs[0].decode() for outputs in np.asarray(answer["outputs"]).tolist()]
    assert texts == [outputs[0]["text"] for outputs in expected["outputs"]]
    np.testing.assert_allclose(
        np.asarray(answer["scores"])[:, 0],
        [outputs[0]["score"] for outputs in expected["outputs"]],
        atol=SCORE_TOLERANCE,
    )
