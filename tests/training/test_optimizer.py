"""Section 5.3: Adam."""

import logging
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import HParams, T2TError, TokenCrossEntropy, Transformer, make_optimizer, registry
from t2t_revival.training.optimizer import learning_rate
from tests.support.bad_batches import HPARAMS, NAN, trained, weighted
from tests.support.copy_shards import assert_same
from tests.support.guide_packages import guide_package

RNG = np.random.default_rng(10)
OTHERS = "adamax", "lamb", "lion", "rmsprop", "sgd"
NIGHTLY = [pytest.param(name, marks=pytest.mark.nightly) for name in OTHERS]


def plain_adam(start: np.ndarray, gradients: np.ndarray, h: HParams) -> np.ndarray:
    """Kingma and Ba's algorithm 1 with equation (3), float64."""
    b1, b2, eps = h.optimizer_adam_beta1, h.optimizer_adam_beta2, h.optimizer_adam_epsilon
    x, m, v = start.astype("float64"), 0.0, 0.0
    for t, g in enumerate(gradients.astype("float64"), 1):
        rate = h.hidden_size**-0.5 * min(t**-0.5, t * h.learning_rate_warmup_steps**-1.5)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        x = x - rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    return x


def updated(optimizer: keras.optimizers.Optimizer, start: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    variable = keras.Variable(start)
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient)], [variable])
    return np.array(variable)


def example() -> tuple[np.ndarray, np.ndarray]:
    scale = 10.0 ** RNG.integers(-4, 3, (1, 3, 4))
    return (
        RNG.standard_normal((3, 4)).astype("float32"),
        (RNG.standard_normal((10, 3, 4)) * scale).astype("float32"),
    )


def test_ten_steps_equal_numpy(tiny_hparams: HParams) -> None:
    start, gradients = example()
    got = updated(make_optimizer(tiny_hparams), start, gradients)
    expected = plain_adam(start, gradients, tiny_hparams)
    assert np.abs(expected - start).max() > 0.1
    np.testing.assert_allclose(got, expected, atol=2e-5)


def test_hparams_reach_the_optimizer(tiny_hparams: HParams) -> None:
    h = tiny_hparams.replace(optimizer_adam_beta1=0.8, optimizer_adam_beta2=0.997, optimizer_adam_epsilon=0.1)
    start, gradients = example()
    got = updated(make_optimizer(h), start, gradients[:1])
    rate, g = 8**-0.5 * 10**-1.5, gradients[0].astype("float64")
    corrected = (1 - 0.997) ** 0.5 / (1 - 0.8)
    expected = start - rate * corrected * 0.2 * g / (np.sqrt(0.003) * np.abs(g) + 0.1)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_accumulated_gradients_make_one_update_of_their_mean(tiny_hparams: HParams) -> None:
    """The schedule counts updates: Keras on its own would warm up twice as fast."""
    start = RNG.standard_normal((3, 4)).astype("float32")
    gradients = RNG.standard_normal((10, 3, 4)).astype("float32")
    got = updated(make_optimizer(tiny_hparams, accumulate=2), start, gradients)
    means = gradients.reshape(5, 2, 3, 4).mean(axis=1)
    np.testing.assert_allclose(got, plain_adam(start, means, tiny_hparams), atol=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_muons_steps_are_orthogonal(tiny_hparams: HParams, dtype: str) -> None:
    """Singular values of a step are about 1 (Jordan et al., 2024), times the factor of Moonlight."""
    start, gradients = np.zeros((3, 4), "float32"), RNG.standard_normal((1, 3, 4)).astype("float32")
    moved = updated(make_optimizer(tiny_hparams.replace(optimizer="muon"), dtype=dtype), start, gradients)
    values = np.linalg.svd(-moved / (float(learning_rate(tiny_hparams, 1)) * 0.2 * 4**0.5))[1]
    assert np.all((values > 0.6) & (values < 1.3))
    left, _, right = np.linalg.svd(gradients[0], full_matrices=False)
    assert np.sum(-moved * (left @ right)) > 0.97 * np.linalg.norm(moved) * 3**0.5


@pytest.mark.parametrize("accumulate", [1, 3])
def test_learning_rate_of_an_update(tiny_hparams: HParams, accumulate: int) -> None:
    """The reported rate is the one used: with one gradient, Adam's first step is the rate itself."""
    ones = np.ones((accumulate, 1), "float32")
    moved = updated(make_optimizer(tiny_hparams, accumulate), np.zeros((1,), "float32"), ones)
    assert float(learning_rate(tiny_hparams, 1)) == pytest.approx(-float(moved[0]), rel=1e-4)


@pytest.mark.slow
def test_a_compiled_model_is_saved_with_its_optimizer(tiny_hparams: HParams, tmp_path: Path) -> None:
    model = Transformer(tiny_hparams.replace(num_hidden_layers=1), 11)
    model.compile(optimizer=make_optimizer(tiny_hparams, 3), loss=TokenCrossEntropy(0.1), jit_compile=False)
    ids = RNG.integers(1, 11, (2, 5)).astype("int32")
    model.fit({"inputs": ids, "targets": ids}, ids, epochs=3, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for found, saved in ((loaded.optimizer, model.optimizer), (loaded.loss, model.loss)):
        assert type(found) is type(saved)
        assert found.get_config() == saved.get_config()
    assert int(loaded.optimizer.iterations) == 1
    for a, b in zip(loaded.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_loop_of_ones_own_prints_no_warning(
    dtype: str, tiny_hparams: HParams, caplog: pytest.LogCaptureFixture
) -> None:
    optimizer = make_optimizer(tiny_hparams, dtype=dtype)
    variable = keras.Variable(np.ones(3, "float32"))
    optimizer.build([variable])

    @tf.function
    def step() -> None:
        optimizer.apply([tf.ones(3)], [variable])

    logger = logging.getLogger("tensorflow")
    logger.addHandler(caplog.handler)
    try:
        step()
    finally:
        logger.removeHandler(caplog.handler)
    assert not caplog.records
    assert np.all(np.array(variable) < 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slow_lion", "adafactor", "muon", *NIGHTLY])
def test_other_optimizers_skip_updates_average_weights_and_resume(
    name: str, shard: Path, tmp_path: Path
) -> None:
    registry.import_usr_dir(guide_package(tmp_path / "usr_slow_lion", "register_optimizer"))
    hparams = HPARAMS.replace(optimizer=name, ema_decay=0.5, effective_batch_size=2 * HPARAMS.batch_size)
    with weighted({3: NAN}):
        whole, notes, _ = trained(shard, tmp_path / "whole", hparams=hparams)
        trained(shard, tmp_path / "parts", hparams=hparams.replace(train_steps=2))
        parts, _, _ = trained(shard, tmp_path / "parts", hparams=hparams)
    assert notes == ["update 2 skipped: loss is nan (1 in a row, 1 in all)"]
    assert sum(entry.startswith(f"optimizer/{name}/") for entry in whole) > 9
    assert_same(parts, whole)


def test_what_is_no_optimizer_is_refused() -> None:
    @registry.register_optimizer
    def nadam(hparams: HParams) -> keras.optimizers.Optimizer:
        return keras.optimizers.Nadam()

    with pytest.raises(T2TError, match="Nadam updates more than each weight by itself: use another"):
        make_optimizer(HParams(optimizer="nadam"))
    with pytest.raises(T2TError, match="unknown optimizer 'adamm'; did you mean adam"):
        registry.hparams("tiny", "optimizer=adamm")
