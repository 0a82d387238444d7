"""Loss scaling: an update that overflows float16 is skipped, and is no fault of the training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import HParams, T2TError, make_optimizer
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.training import optimizer as optimizers
from t2t_revival.training.optimizer import FIRST_SCALE, Adam, LossScale, TrainingOptimizer
from tests.support import bad_batches
from tests.support.bad_batches import HUGE, NAN, trained, weighted
from tests.support.copy_shards import assert_same

RNG = np.random.default_rng(11)
HPARAMS = bad_batches.HPARAMS.replace(layer_prepostprocess_dropout=0.2)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]


def trained_in_float16(shard: Path, out: Path, **config: Any) -> tuple[dict[str, np.ndarray], list[str], Any]:
    """Arrays, notes and result of a training with dropout."""
    return trained(shard, out, **{"hparams": HPARAMS, "precision": "mixed_float16", **config})


def scaled(hparams: HParams, accumulate: int = 1) -> tuple[TrainingOptimizer, list[tf.Variable]]:
    optimizer = make_optimizer(hparams, accumulate, "float16")
    variables = [tf.Variable(tf.ones((3, 4)))]
    optimizer.build(variables)
    return optimizer, variables


@pytest.mark.parametrize("accumulate", [1, 3])
def test_gradients_of_a_scaled_loss_make_the_update_of_the_loss(
    tiny_hparams: HParams, accumulate: int
) -> None:
    """Equality is exact, since the scale is a power of 2."""
    gradients = RNG.standard_normal((2 * accumulate, 3, 4)).astype("float32")
    optimizer, (variable,) = scaled(tiny_hparams, accumulate)
    plain, expected = make_optimizer(tiny_hparams, accumulate), tf.Variable(tf.ones((3, 4)))
    for gradient in gradients:
        assert float(optimizer.scale_loss(tf.constant(2.0))) == 2 * FIRST_SCALE
        optimizer.apply([tf.constant(gradient * FIRST_SCALE)], [variable])
        plain.apply([tf.constant(gradient)], [expected])
    assert optimizer.loss_scale == (FIRST_SCALE, 2)
    np.testing.assert_array_equal(variable, expected)
    assert abs(variable.numpy() - 1).max() > 1e-3


@pytest.mark.parametrize("accumulate", [1, 3])
def test_an_overflow_halves_the_scale_and_is_left_out(tiny_hparams: HParams, accumulate: int) -> None:
    optimizer, (variable,) = scaled(tiny_hparams, accumulate)
    good, bad = tf.ones((3, 4)), tf.fill((3, 4), np.inf)
    for gradient in [good] * accumulate:
        optimizer.apply([gradient], [variable])
    before = [np.array(v) for v in (variable, *optimizer.moments)]
    for gradient in [bad, *[good] * (accumulate - 1)]:
        optimizer.apply([gradient], [variable])
    assert (optimizer.updates, optimizer.loss_scale) == (1, (FIRST_SCALE / 2, 0))
    for found, expected in zip((variable, *optimizer.moments), before, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_scale_is_at_least_1_and_grows_again(
    tiny_hparams: HParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimizers, "UPDATES_TO_GROW", 3)
    optimizer, (variable,) = scaled(tiny_hparams)
    for _ in range(17):
        optimizer.apply([tf.fill((3, 4), np.nan)], [variable])
    assert optimizer.loss_scale == (1, 0)
    scales = []
    for _ in range(7):
        optimizer.apply([tf.ones((3, 4))], [variable])
        scales.append(tuple(optimizer.loss_scale))
    assert scales == [(1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (4, 0), (4, 1)]


def test_what_keras_adam_has_besides_is_refused() -> None:
    with pytest.raises(T2TError, match="takes no clipping"):
        Adam(clipnorm=1.0)


def test_an_overflow_is_not_counted_as_not_finite(shard: Path, tmp_path: Path) -> None:
    """The weight of a token makes gradients overflow, while the loss is finite."""
    with weighted({3: HUGE, 4: HUGE}):
        _, notes, result = trained_in_float16(shard, tmp_path, max_nonfinite_steps=1)
    fault = "update 3 skipped: scaled gradients overflow float16; loss scale lowered to"
    assert notes == [f"{fault} 16384", f"{fault} 8192"]
    assert (result.step, result.skipped_updates, result.overflows) == (4, 0, 2)
    _, meta = checkpoints.load(checkpoints.list_checkpoints(tmp_path)[-1].path)
    assert LossScale(*meta["loss_scale"]) == (8192, 2)


def test_a_loss_that_is_not_finite_is(shard: Path, tmp_path: Path) -> None:
    with (
        weighted({2: NAN}),
        pytest.raises(T2TError, match="training diverged at update 2: loss is nan, 1 times in a row"),
    ):
        trained_in_float16(shard, tmp_path, max_nonfinite_steps=1)


def test_a_run_resumed_around_an_overflow_ends_with_the_same_bits(shard: Path, tmp_path: Path) -> None:
    with weighted({3: HUGE}):
        whole, _, result = trained_in_float16(shard, tmp_path / "whole")
        out = tmp_path / "resumed"
        trained_in_float16(shard, out, hparams=HPARAMS.replace(train_steps=2))
        parts, _, resumed = trained_in_float16(shard, out)
    assert_same(parts, whole)
    assert result.overflows == resumed.overflows == 1
    assert result.seen.examples == resumed.seen.examples


def test_a_run_may_go_on_in_another_precision(shard: Path, tmp_path: Path) -> None:
    for steps, precision in ((2, "mixed_float16"), (3, "float32"), (4, "mixed_float16")):
        hparams = HPARAMS.replace(train_steps=steps)
        assert trained(shard, tmp_path, hparams=hparams, precision=precision)[2].step == steps
