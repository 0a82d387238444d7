"""Section 5.3 and tensor2tensor's schedules."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import HParams, T2TError, registry
from t2t_revival.training.engines.engine import accumulation
from t2t_revival.training.optimizer import Schedule, learning_rate
from tests.support.guide_packages import guide_package

T2T_RATES = np.load(Path(__file__).parents[1] / "reference" / "learning_rate.npz")


@pytest.mark.parametrize(("name", "rates"), zip(T2T_RATES["sets"], T2T_RATES["rates"], strict=True))
def test_rates_are_those_of_tensor2tensor(name: str, rates: np.ndarray) -> None:
    """Rates at the same step are equal; T2T's step counts the micro-batches of an update."""
    h = registry.hparams(str(name))
    micro_batches = accumulation(h, replicas=1)
    whole = T2T_RATES["steps"] % micro_batches == 0
    got = learning_rate(h, T2T_RATES["steps"][whole] // micro_batches)
    np.testing.assert_allclose(got, rates[whole], rtol=2e-6)


def test_schedule_counts_micro_batches_of_an_update_as_one() -> None:
    h = HParams()
    schedule = Schedule(h, accumulate=3)
    got = [float(schedule(i)) for i in (*range(6), 3 * 3999)]
    assert got == [float(learning_rate(h, step)) for step in (1, 1, 1, 2, 2, 2, 4000)]


STEPS = np.array([1, 50, 99, 100, 101, 150, 199, 200, 201, 300, 399, 400, 550, 999, 1000], np.float64)
SHAPES = HParams(
    hidden_size=64,
    learning_rate_warmup_steps=100,
    learning_rate_decay_steps=200,
    learning_rate_decay_rate=0.5,
    train_steps=1000,
)


def cosine(position: np.ndarray) -> np.ndarray:
    return (np.cos(np.pi * position) + 1) / 2


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("linear_decay", np.minimum(1, (1000 - STEPS) / 200)),
        ("cosdecay", np.where(STEPS > 100, cosine(STEPS / 200), 1)),
        ("single_cycle_cos_decay", np.where(STEPS > 100, cosine((STEPS - 100) / 900), 1)),
        ("multi_cycle_cos_decay", np.where(STEPS > 100, cosine((STEPS - 100) / 200), 1)),
        ("rsqrt_normalized_decay", np.where(STEPS > 100, 10 / np.sqrt(STEPS), 1)),
        ("exp_decay", np.where(STEPS > 100, 0.5 ** ((STEPS - 100) / 200), 1)),
        (
            "linear_warmup * single_cycle_cos_decay",
            np.where(STEPS > 100, cosine((STEPS - 100) / 900), STEPS / 100),
        ),
        ("linear_warmup*linear_warmup", np.minimum(1, STEPS / 100) ** 2),
    ],
)
def test_shapes_of_tensor2tensor(schedule: str, expected: np.ndarray) -> None:
    """The values of its `utils/learning_rate.py` in 1.15.7, by formulas written here."""
    got = learning_rate(SHAPES.replace(learning_rate_schedule=schedule), STEPS)
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)


def test_exponential_decay_in_steps() -> None:
    h = SHAPES.replace(learning_rate_schedule="exp_decay", learning_rate_decay_staircase=True)
    got = learning_rate(h, np.array([100, 299, 300, 499, 500, 1000]))
    np.testing.assert_allclose(got, [1, 1, 0.5, 0.5, 0.25, 0.0625])


def test_unknown_factors_are_refused_with_the_known_ones() -> None:
    message = "unknown factor of learning_rate_schedule 'rsqrt_decy'; did you mean rsqrt_decay"
    with pytest.raises(T2TError, match=message):
        Schedule(HParams(learning_rate_schedule="constant*rsqrt_decy"))
    with pytest.raises(T2TError, match=r"'zzz'; known: constant, cosdecay, exp_decay, .*--t2t_usr_dir"):
        registry.hparams("tiny", "learning_rate_schedule=zzz")


def test_a_trained_model_is_read_without_its_factor(tmp_path: Path) -> None:
    """Only a training needs it; its first check names --t2t_usr_dir."""
    HParams(learning_rate_schedule="constant*mine_of_old").save(tmp_path)
    stored = HParams.load(tmp_path)
    assert stored is not None
    assert stored.learning_rate_schedule == "constant*mine_of_old"
    with pytest.raises(T2TError, match=r"'mine_of_old'.*one of your own needs --t2t_usr_dir"):
        stored.override("")


def test_a_factor_of_ones_own_runs_in_a_graph(tmp_path: Path) -> None:
    schedule = "constant*cool_down"
    with pytest.raises(T2TError, match="'cool_down'"):
        registry.hparams("tiny", f"learning_rate_schedule={schedule}")
    registry.import_usr_dir(guide_package(tmp_path / "usr_rates", "schedule_factor"))
    assert registry.list_schedule_factors()["cool_down"].startswith("1, then along a square root")
    rates = Schedule(
        registry.hparams(
            "tiny", f"learning_rate_schedule={schedule},learning_rate_constant=3,train_steps=100"
        )
    )
    got = [float(tf.function(rates)(tf.constant(i))) for i in (0, 88, 89, 94, 99)]
    np.testing.assert_allclose(got, [3, 3, 3, 3 * 0.5**0.5, 0], rtol=1e-6)


def test_a_factor_of_a_name_that_is_taken_is_not_registered() -> None:
    with pytest.raises(
        T2TError, match=r"schedule factor 'constant' is registered twice, in .*schedule_factors"
    ):

        @registry.register_schedule_factor
        def constant(step: object, hparams: HParams) -> float:
            return 1.0
