"""Section 5.3, equation (3), and tensor2tensor's schedules."""

from pathlib import Path

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import registry
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.training.distribution import accumulation
from t2t_revival.training.schedule import Schedule, learning_rate


def equation_3(step: int, d_model: int, warmup: int) -> float:
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@settings(max_examples=60, deadline=None)
@given(
    step=st.integers(1, 300_000),
    d_model=st.sampled_from([256, 512, 1024]),
    warmup=st.sampled_from([1, 400, 4000]),
)
def test_equation_3(step: int, d_model: int, warmup: int) -> None:
    h = HParams(hidden_size=d_model, learning_rate_warmup_steps=warmup)
    assert float(learning_rate(h, step)) == pytest.approx(equation_3(step, d_model, warmup), rel=2e-6)


def test_the_peak_of_the_base_model() -> None:
    assert float(learning_rate(HParams(), 4000)) == pytest.approx(6.9877e-4, rel=1e-4)


T2T_RATES = np.load(Path(__file__).parents[1] / "reference" / "learning_rate.npz")


@pytest.mark.parametrize(("name", "rates"), zip(T2T_RATES["sets"], T2T_RATES["rates"], strict=True))
def test_rates_are_those_of_tensor2tensor(name: str, rates: np.ndarray) -> None:
    """At the same step; where several micro-batches make an update, T2T's step counts micro-batches."""
    h = registry.hparams(str(name))
    micro_batches = accumulation(h, replicas=1)
    whole = T2T_RATES["steps"] % micro_batches == 0
    got = learning_rate(h, T2T_RATES["steps"][whole] // micro_batches)
    np.testing.assert_allclose(got, rates[whole], rtol=2e-6)


def test_every_set_of_tensor2tensor_has_its_rates() -> None:
    assert {name for name in registry.list_hparams() if name.startswith("transformer_")} == {
        *T2T_RATES["sets"].tolist()
    }


def test_schedule_counts_from_0_as_keras_does() -> None:
    h = HParams()
    schedule = Schedule(h)
    assert [float(schedule(i)) for i in (0, 3999)] == [float(learning_rate(h, i)) for i in (1, 4000)]


def test_schedule_counts_micro_batches_of_an_update_as_one() -> None:
    h = HParams()
    schedule = Schedule(h, accumulate=3)
    got = [float(schedule(i)) for i in range(6)]
    assert got == [float(learning_rate(h, step)) for step in (1, 1, 1, 2, 2, 2)]


def test_unknown_factor() -> None:
    with pytest.raises(
        T2TError, match="unknown factor of learning_rate_schedule 'rsqrt_decy'; did you mean rsqrt_decay"
    ):
        Schedule(HParams(learning_rate_schedule="constant*rsqrt_decy"))


def test_config_round_trip() -> None:
    schedule = Schedule(HParams(hidden_size=64, learning_rate_warmup_steps=7), accumulate=3)
    serialized = keras.optimizers.schedules.serialize(schedule)
    again = keras.optimizers.schedules.deserialize(serialized)
    assert isinstance(again, Schedule)
    assert (again.hparams, again.accumulate) == (schedule.hparams, 3)
