"""Low-rank adapters: they alone learn, and whoever loads a checkpoint finds them merged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2t_revival import RunConfig, T2TError, Transformer
from t2t_revival.training.checkpoints import directory as checkpoints
from t2t_revival.training.checkpoints.adapters import is_adapter, weight_path
from t2t_revival.training.checkpoints.file import EMA, MODEL, OPTIMIZER
from t2t_revival.training.compile import build_model, compile_model
from t2t_revival.training.lora import AdaptedMatrix, merged
from t2t_revival.training.run import Run
from t2t_revival.training.warm_start import WarmStart
from tests.support.copy_shards import HPARAMS, VOCAB
from tests.support.copy_task import final_arrays, train

slow = pytest.mark.slow
LORA = HPARAMS.replace(lora_rank=2, train_steps=3)
RNG = np.random.default_rng(5)
BATCH = {"inputs": RNG.integers(2, VOCAB, (2, 5)), "targets": RNG.integers(2, VOCAB, (2, 4))}


def random_adapters(model: object) -> None:
    for _, adapter in model.adapters:  # type: ignore[attr-defined]
        adapter.b.assign(RNG.normal(size=adapter.b.shape))


def test_the_matrix_is_the_sum() -> None:
    w, a, b = (RNG.normal(size=shape).astype("f") for shape in ((6, 5), (6, 2), (2, 5)))
    rows, ids = RNG.normal(size=(3, 6)).astype("f"), np.array([[4, 0]])
    matrix, whole = AdaptedMatrix(w, a, b), w + a @ b
    np.testing.assert_allclose(matrix.multiply(rows), rows @ whole, atol=1e-5)
    np.testing.assert_allclose(matrix.take(ids), whole[ids], atol=1e-5)
    np.testing.assert_allclose(matrix.transpose(), whole.T, atol=1e-5)


def test_a_model_begins_as_it_was_and_each_adapter_counts() -> None:
    model, plain = build_model(LORA, VOCAB), build_model(HPARAMS, VOCAB)
    for weight in plain.weights:
        weight.assign(next(own for own in model.weights if own.path == weight.path))
    np.testing.assert_array_equal(model(BATCH), plain(BATCH))
    kinds = {weight.name for weight, _ in model.adapters}
    assert kinds == {"query_key_value", "query", "key_value", "output", "kernel_1", "kernel_2"}
    for weight, adapter in model.adapters:
        adapter.b.assign(RNG.normal(size=adapter.b.shape))
        assert np.abs(model(BATCH) - plain(BATCH)).max() > 1e-4, weight.path
        adapter.b.assign(np.zeros(adapter.b.shape))


def test_merged_it_is_the_same_model_and_goes_back_to_the_bit() -> None:
    model = build_model(LORA, VOCAB)
    random_adapters(model)
    before, expected = [weight.numpy() for weight in model.weights], np.array(model(BATCH))
    plain = Transformer(HPARAMS, VOCAB)
    with merged(model.adapters):
        np.testing.assert_allclose(model(BATCH), expected, atol=1e-4)
        for weight in plain.weights:
            weight.assign(next(own for own in model.weights if own.path == weight.path))
    np.testing.assert_allclose(plain(BATCH), expected, atol=1e-4)
    for weight, values in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight, values)


def test_whoever_loads_a_checkpoint_gets_the_merged_model(tmp_path: Path) -> None:
    model = build_model(LORA, VOCAB)
    random_adapters(model)
    path = tmp_path / "model.ckpt-1.npz"
    checkpoints.save(path, checkpoints.model_arrays(model), {"step": 1})
    averaged = checkpoints.average(checkpoints.list_checkpoints(tmp_path), tmp_path).path
    for stored in (path, averaged):
        plain = Transformer(HPARAMS, VOCAB)
        checkpoints.restore_weights(plain, stored)
        np.testing.assert_allclose(plain(BATCH), model(BATCH), atol=1e-4)


@slow
@pytest.mark.usefixtures("models")
def test_adapters_alone_learn_and_are_evaluated(shards: list[Path], tmp_path: Path) -> None:
    general, out = tmp_path / "general", tmp_path / "out"
    train(shards, HPARAMS.replace(train_steps=2), VOCAB, RunConfig(general))
    Run("translate_ende", "tiny", "data", "vocab.spm", "a", {}).save(general)
    start, seen = WarmStart.open(general), []

    def evaluate(model: object) -> dict[str, float]:
        seen.append({weight.path: weight.numpy() for weight in model.weights})  # type: ignore[attr-defined]
        return {"loss": 1.0}

    hparams = LORA.replace(ema_decay=0.5, learning_rate_constant=10.0)
    train(shards, hparams, VOCAB, RunConfig(out, warm_start=start), evaluate)
    before, after = final_arrays(general), final_arrays(out)
    for name, array in after.items():
        if name in before and name.startswith(MODEL) and array.dtype == "f":
            np.testing.assert_array_equal(before[name], array)
    assert all(is_adapter(name) for name in after if name.startswith((OPTIMIZER, EMA)))
    used, _ = checkpoints.load_weights(out / "model.ckpt-3.npz")
    changed = [name for name, array in used.items() if array.dtype == "f" and (array != before[name]).any()]
    assert changed
    for name in changed:
        np.testing.assert_allclose(seen[-1][name.removeprefix(MODEL)], used[name], atol=1e-6)


def test_what_is_frozen_is_named_by_the_matrices_paths() -> None:
    model = build_model(LORA, VOCAB)
    compile_model(model, LORA.replace(freeze="encoder/"))
    trained = {weight_path(weight.path) for weight in model.trainable_variables}
    assert trained
    assert all("transformer/decoder/" in path for path in trained)
    assert all(is_adapter(weight.path) for weight in model.trainable_variables)
    with pytest.raises(T2TError, match="--freeze=layer matches all weights"):
        compile_model(build_model(LORA, VOCAB), LORA.replace(freeze="layer"))
