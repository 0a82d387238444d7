"""Low-rank adapters: whoever loads a checkpoint finds them merged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2t_revival import T2TError, Transformer
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import is_adapter, weight_path
from t2t_revival.training.model import build_model, compile_model, merged
from tests.support.copy_shards import HPARAMS, VOCAB

slow = pytest.mark.slow
LORA = HPARAMS.replace(lora_rank=2, train_steps=3)
RNG = np.random.default_rng(5)
BATCH = {"inputs": RNG.integers(2, VOCAB, (2, 5)), "targets": RNG.integers(2, VOCAB, (2, 4))}


def random_adapters(model: object) -> None:
    for _, adapter in model.adapters:  # type: ignore[attr-defined]
        adapter.b.assign(RNG.normal(size=adapter.b.shape))


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
    averaged = checkpoints.write_average(checkpoints.list_checkpoints(tmp_path), tmp_path / "averaged")
    for stored in (path, averaged):
        plain = Transformer(HPARAMS, VOCAB)
        checkpoints.restore_weights(plain, stored)
        np.testing.assert_allclose(plain(BATCH), model(BATCH), atol=1e-4)


def test_what_is_frozen_is_named_by_the_matrices_paths() -> None:
    model = build_model(LORA, VOCAB)
    compile_model(model, LORA.replace(freeze="encoder/"))
    trained = {weight_path(weight.path) for weight in model.trainable_variables}
    assert trained
    assert all("transformer/decoder/" in path for path in trained)
    assert all(is_adapter(weight.path) for weight in model.trainable_variables)
    with pytest.raises(T2TError, match="--freeze=layer matches all weights"):
        compile_model(build_model(LORA, VOCAB), LORA.replace(freeze="layer"))
