"""Moving averages of the weights: their values, what is loaded, how they begin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2t_revival import RunConfig
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import EMA, MODEL, StoredWeights, weights_of
from t2t_revival.training.model import build_model
from tests.support.copy_shards import HPARAMS, VOCAB
from tests.support.copy_task import final_arrays, train

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]
DECAY = 0.75


@pytest.mark.parametrize(
    ("effective_batch_size", "precision"), [(0, "float32"), (512, "float32"), (0, "mixed_float16")]
)
def test_averages_are_numpys_and_are_what_is_loaded(
    shards: list[Path], tmp_path: Path, effective_batch_size: int, precision: str
) -> None:
    sizes = {"effective_batch_size": effective_batch_size, "train_steps": 4}
    config = RunConfig(tmp_path, eval_frequency=1, precision=precision)  # type: ignore[arg-type]
    train(shards, HPARAMS.replace(ema_decay=DECAY, **sizes), VOCAB, config)
    each = [checkpoints.load(saved.path)[0] for saved in checkpoints.list_checkpoints(tmp_path)]
    names = [name.removeprefix(EMA) for name in each[-1] if name.startswith(EMA)]
    assert names
    newest = checkpoints.list_checkpoints(tmp_path)[-1].path
    used = StoredWeights(newest)
    for name in names:
        average = each[0][MODEL + name].astype("float64")
        for arrays in each[1:]:
            average = DECAY * average + (1 - DECAY) * arrays[MODEL + name]
        np.testing.assert_allclose(each[-1][EMA + name], average, atol=1e-6)
        assert not np.allclose(each[-1][MODEL + name], average, atol=1e-6)
        np.testing.assert_array_equal(used[MODEL + name], each[-1][EMA + name])
    model = build_model(HPARAMS, VOCAB)
    checkpoints.restore_weights(model, newest)
    for weight in model.weights:
        np.testing.assert_array_equal(weight, each[-1][EMA + weight.path])


def test_averages_begin_with_the_weights_where_a_run_had_none(shards: list[Path], tmp_path: Path) -> None:
    train(shards, HPARAMS.replace(train_steps=3), VOCAB, RunConfig(tmp_path))
    before = final_arrays(tmp_path)
    train(shards, HPARAMS.replace(train_steps=4, ema_decay=DECAY), VOCAB, RunConfig(tmp_path))
    after = final_arrays(tmp_path)
    averages = [name for name in after if name.startswith(EMA)]
    assert averages
    for name in averages:
        own = MODEL + name.removeprefix(EMA)
        expected = DECAY * before[own] + (1 - DECAY) * after[own]
        np.testing.assert_allclose(after[name], expected, atol=1e-6)


def test_averages_are_weights_for_whoever_compares(tmp_path: Path) -> None:
    arrays = {f"{MODEL}w": np.zeros(3, "f")}
    prints = []
    for average in (None, 1.0, 2.0):
        path = tmp_path / "model.ckpt-1.npz"
        more = {} if average is None else {f"{EMA}w": np.full(3, average, "f")}
        checkpoints.save(path, {**arrays, **more}, {"step": 1})
        prints.append(weights_of(path))
    assert len(set(prints)) == 3
