"""JAX translates and scores a split as TensorFlow does, where that cannot be imported.

The search itself is held to the oracles of test_beam_search.py.
"""

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

from t2t_revival import DecodeHParams, Transformer, Translator, registry
from t2t_revival.evaluation.split_scores import SplitScores
from tests.support.backend_process import run_with_backend
from tests.support.tiny_models import TINY

ROOT = Path(__file__).parents[2]
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


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Results of JAX, which reads its inputs from a folder, and of TensorFlow."""
    folder = tmp_path_factory.mktemp("jax")
    expected = {}
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
    assert found["none"] == []
    assert found["best_ids"] == expected["best_ids"]
    assert found["engine"] == "jax, float32"


def test_other_options_are_refused(both):
    refusals = both[0]["refusals"]
    for name, message in refusals.items():
        assert "KERAS_BACKEND=tensorflow" in message, name
        assert "\n" not in message
    assert "no_repeat_ngram_size" in refusals["no_repeat_ngram_size=2"]
    assert "trees" in refusals["trees"]
