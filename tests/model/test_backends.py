"""The model is written for every Keras backend."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from keras import ops

import t2t_revival.model
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer

MODEL_FOLDER = Path(t2t_revival.model.__file__).parent
IN_JAX = Path(__file__).with_name("train_in_jax.py")
ALLOWED = {"keras", "t2t_revival.hparams", "t2t_revival.model"}


def imported_modules(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: a relative import"
            names.add(node.module or "")
    return names


def is_allowed(module: str) -> bool:
    if module.partition(".")[0] in sys.stdlib_module_names:
        return True
    return any(module == name or module.startswith(f"{name}.") for name in ALLOWED)


@pytest.mark.parametrize("file", sorted(MODEL_FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_imports_only_keras_and_itself(file: Path) -> None:
    assert {module for module in imported_modules(file) if not is_allowed(module)} == set()


@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed: pip install t2t_revival[jax]"
)
@pytest.mark.parametrize("window", [0, 2])
def test_it_computes_and_trains_the_same_under_jax(
    window: int, tmp_path: Path, tiny_hparams: HParams
) -> None:
    """The subprocess computes the same logits from the same weights, then trains (`train_in_jax.py`)."""
    hparams = tiny_hparams.replace(deterministic_attention=True, attention_window=window)
    model = Transformer(hparams, 11)
    assert model.deterministic_attention is not None
    marks = np.zeros((11, 3), "float32")
    marks[[1, 5], 0] = marks[7, 1] = marks[[2, 9], 2] = 1
    model.deterministic_attention.marks.assign(marks)
    ids = {
        "inputs": np.array([[3, 4, 5, 1], [7, 8, 1, 0]], "int32"),
        "targets": np.array([[9, 2, 1], [3, 1, 0]], "int32"),
    }
    weights = {weight.path: ops.convert_to_numpy(weight) for weight in model.weights}
    np.savez(tmp_path / "weights.npz", **weights)
    np.savez(tmp_path / "ids.npz", **ids)
    (tmp_path / "hparams.json").write_text(hparams.to_json())
    done = subprocess.run(
        [sys.executable, str(IN_JAX), str(tmp_path)],
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = np.load(tmp_path / "found.npz")
    np.testing.assert_allclose(found["logits"], ops.convert_to_numpy(model(ids)), atol=2e-5)
    np.testing.assert_allclose(found["steps"], found["logits"], atol=2e-5)
    for losses in (found["loss"], found["cross_entropy"]):
        assert np.isfinite(losses).all()
        assert losses[-1] < 0.8 * losses[0]
    assert (found["cross_entropy"] > found["loss"]).all(), "from which the entropy is subtracted"
