"""The model and each of its layers work under every Keras backend; `layer_checks` is the harness."""

import importlib.util
import os
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

import t2t_revival.model
from t2t_revival import HParams, Transformer
from tests.support.backend_process import run_with_backend
from tests.support.layer_checks import CASES, check_layer
from tests.support.tiny_models import VARIATIONS

ROOT = Path(__file__).parents[2]
IDS = {
    "inputs": np.array([[3, 4, 5, 1], [7, 8, 1, 0]], "int32"),
    "targets": np.array([[9, 2, 1], [3, 1, 0]], "int32"),
}
FLAGS = np.zeros((11, 3), "float32")  # of tokens; see `DeterministicAttention`
FLAGS[[1, 5], 0] = FLAGS[7, 1] = FLAGS[[2, 9], 2] = 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_layer_in_tensorflow(name: str, tmp_path: Path) -> None:
    check_layer(CASES[name], tmp_path)


def test_every_public_layer_is_checked() -> None:
    checked = {case.layer_type.__name__ for case in CASES.values()}
    assert checked | {"Transformer", "DecoderState", "AttentionWeights", "LayerConfig"} >= set(
        t2t_revival.model.__all__
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=pytest.mark.nightly)])
def test_every_layer_and_the_model_in_another_backend(
    backend: str, tmp_path: Path, tiny_hparams: HParams
) -> None:
    """The subprocess checks all layers, loads models saved here, decodes step by step, and trains."""
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed: pip install t2t_revival[{backend}]")
    keras.utils.set_random_seed(1)
    expected = {}
    hparams = tiny_hparams.replace(deterministic_attention=True)
    recurrent = {"decoder_self_attention": "ssru"}
    models: dict[str, dict] = {"full": {}, "restricted": {"attention_window": 2}, "recurrent": recurrent}
    models |= {"bfloat16": {}} | VARIATIONS
    for name, changes in models.items():
        dtype = "mixed_bfloat16" if name == "bfloat16" else "float32"
        model = Transformer(hparams.replace(**changes), 11, dtype=dtype)
        assert model.deterministic_attention is not None
        model.deterministic_attention.token_flags.assign(FLAGS)
        model.save(tmp_path / f"{name}.keras")
        expected[name] = ops.convert_to_numpy(ops.cast(model(IDS), "float32"))
    np.savez(tmp_path / "ids.npz", **IDS)
    hparams.save(tmp_path)
    command = [sys.executable, "-m", "tests.support.check_backend", str(tmp_path), backend]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = run_with_backend(command, backend, PYTHONPATH=path)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-3000:]
    found = np.load(tmp_path / f"{backend}.npz")
    for name, logits in expected.items():
        tolerance = 0.1 if name == "bfloat16" else 2e-5  # of logits to 4, in steps of 1/64; processors differ
        np.testing.assert_allclose(found[f"{name}/logits"], logits, atol=tolerance)
        np.testing.assert_allclose(found[f"{name}/steps"], found[f"{name}/logits"], atol=tolerance)
    for losses in (found["loss"], found["of_logits"]):
        assert np.isfinite(losses).all()
        assert losses[-1] < 0.8 * losses[0]
    assert (found["of_logits"] > found["loss"]).all(), "from which the entropy is subtracted"
