"""JAX decodes and scores as TensorFlow does, in a process in which TensorFlow cannot be imported."""

import importlib.util
import json
import os
import pickle
import sys
from dataclasses import asdict
from pathlib import Path

import keras
import numpy as np
import pytest

from t2t_revival import registry
from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.evaluation.split_scores import SplitScores
from t2t_revival.model import Transformer
from tests.support.backend_process import run_with_backend
from tests.support.tiny_models import TINY, tiny

ROOT = Path(__file__).parents[2]
VOCAB = 11
SOURCES = np.zeros((12, 9), np.int32)  # the last two have no source
for row, length in enumerate([1, 9, 4, 3, 7, 2, 5, 8, 6, 9]):
    SOURCES[row, :length] = [*(2 + (3 * row + np.arange(length - 1)) % (VOCAB - 2)), 1]
# Model, early_stopping, beam_size, alpha, extra_length and n; programs differ by all of them but alpha.
CASES = [
    *(("full", False, 1, alpha, 7, 1) for alpha in (0.0, 0.6)),
    *(("full", False, 4, alpha, 7, 4) for alpha in (0.0, 0.6, 1.5, -0.5)),
    ("full", False, 4, 0.6, 0, 4),
    ("full", True, 4, 1.5, 7, 1),
    ("restricted", False, 3, 0.6, 7, 2),
    ("recurrent", False, 3, 0.6, 7, 2),
    ("words", False, 3, 0.6, 7, 2),
]
CHANGES = {
    "full": {},
    "restricted": {"attention_window": 3},
    "recurrent": {"decoder_self_attention": "ssru"},
    "words": {"deterministic_attention": True},
}
OPTIONS = DecodeHParams(beam_size=3, extra_length=5)
PAIRS = [(f"the dog sees {n} houses .", f"der Hund sieht {n} Häuser .") for n in range(40)]
LINES = [
    "the dog sees 3 houses .",
    "",
    "dog",
    " \t ",
    "the the houses sees 7 dog the dog sees 7 houses",
    "ß 👩‍👧",
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None, reason="needs JAX: pip install t2t_revival[jax]"
    ),
]


def saved_models(folder):
    """Saves the models of the cases, and returns what TensorFlow's search finds."""
    expected = []
    for name, early_stopping, beam_size, alpha, extra_length, n in CASES:
        model, search = tiny(VOCAB, seed=1, hparams=TINY.replace(**CHANGES[name]), scale=1.5)
        if model.deterministic_attention:
            flags = np.zeros((VOCAB, 3), np.float32)
            flags[[1, 5], 0] = flags[7, 1] = flags[[2, 9], 2] = 1
            model.deterministic_attention.token_flags.assign(flags)
        model.save(folder / f"{name}.keras")
        if early_stopping:
            search = BeamSearch(model, early_stopping=True)
        expected.append([np.asarray(x) for x in search(SOURCES, beam_size, alpha, extra_length, n)])
    return expected


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Results of JAX, which reads its inputs from a folder, and of TensorFlow."""
    folder = tmp_path_factory.mktemp("jax")
    expected = {"outputs": saved_models(folder)}
    np.save(folder / "sources.npy", SOURCES)
    (folder / "cases.json").write_text(json.dumps(CASES))
    (folder / "lines.json").write_text(json.dumps(LINES))
    source = folder / "source"
    source.mkdir()
    for split, pairs in (("train", PAIRS), ("dev", PAIRS[::7])):
        for side, language in enumerate(("en", "de")):
            (source / f"{split}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    problem = registry.problem("translate_ende", data_source=str(source), vocab_size=310)
    problem.generate_data(folder / "data")
    vocabularies = problem.vocabularies(folder / "data")
    keras.utils.set_random_seed(3)
    model = Transformer(TINY, vocabularies.inputs.size)
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * 3)
    model.save(folder / "translator.keras")
    split_scores = SplitScores(problem, "dev", folder / "data", TINY, vocabularies, OPTIONS, 10)
    expected["scores"] = [split_scores.with_outputs(model)]
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * 0.5)
    expected["scores"].append(split_scores.with_outputs(model))
    translator = Translator(model, vocabularies.inputs, OPTIONS)
    expected["nbest"] = [[asdict(one) for one in outputs] for outputs in translator.nbest(LINES, n=2)]
    expected["best_ids"] = translator.best_ids(translator.encode(LINES[0]))

    command = [sys.executable, "-m", "tests.support.check_jax_decoding", str(folder)]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = run_with_backend(command, "jax", PYTHONPATH=path)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-3000:]
    return pickle.loads((folder / "found.pkl").read_bytes()), expected


def test_outputs_are_those_of_tensorflows_search(both):
    found, expected = both
    for case, (ids, scores), (expected_ids, expected_scores) in zip(
        CASES, found["outputs"], expected["outputs"], strict=True
    ):
        longest = max(ids.shape[2], expected_ids.shape[2])
        padded = [np.pad(x, ((0, 0), (0, 0), (0, longest - x.shape[2]))) for x in (ids, expected_ids)]
        np.testing.assert_array_equal(*padded, err_msg=str(case))
        np.testing.assert_allclose(scores, expected_scores, atol=1e-4, err_msg=str(case))
    several = {tuple(row) for ids, _ in expected["outputs"] for row in ids.reshape(-1, ids.shape[2]).tolist()}
    assert len(several) > 40


def test_programs_are_few(both):
    """Sources have 16 tokens, and alpha is an input of a program."""
    assert both[0]["num_compiled"] == {"full": 4, "restricted": 1, "recurrent": 1, "words": 1}


def test_scores_of_a_split(both):
    found, expected = both
    for (scores, outputs), (expected_scores, expected_outputs) in zip(
        found["scores"], expected["scores"], strict=True
    ):
        assert outputs == expected_outputs
        assert scores == pytest.approx(expected_scores, rel=1e-4)
    assert found["scores"][0][0]["loss"] != found["scores"][1][0]["loss"], "of the first weights"


def test_translations(both):
    found, expected = both
    for outputs, expected_outputs in zip(found["nbest"], expected["nbest"], strict=True):
        assert [one["text"] for one in outputs] == [one["text"] for one in expected_outputs]
        np.testing.assert_allclose(
            [one["score"] for one in outputs], [one["score"] for one in expected_outputs], atol=1e-4
        )
    assert found["best_ids"] == expected["best_ids"]
    assert found["engine"] == "jax, float32"


def test_other_options_are_refused(both):
    refusals = both[0]["refusals"]
    for name, message in refusals.items():
        assert "KERAS_BACKEND=tensorflow" in message, name
        assert "\n" not in message
    assert "no_repeat_ngram_size" in refusals["no_repeat_ngram_size=2"]
    assert "trees" in refusals["trees"]
