"""Section 5.3: the learning rate."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from t2t_revival import registration
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams


def learning_rate(hparams: HParams, step: Any) -> Any:
    """The learning rate of an update.

    With the paper's schedule and a constant of 1 this is equation (3):
    d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    Args:
        hparams: reads `learning_rate_schedule`, a product of factors' names as in T2T
            (`utils/learning_rate.py`), and the fields that these factors read.
        step: number of the update, counted from 1; a scalar, or several of any shape.

    Returns:
        float32, of the step's shape.

    Raises:
        T2TError: a factor is unknown, or does not return a number.
    """
    step = ops.cast(step, "float32")
    rate = ops.ones_like(step)
    for factor in registration.schedule_factors(hparams.learning_rate_schedule):
        rate = rate * _number(factor, factor(step, hparams), step)
    return rate


def _number(factor: registration.ScheduleFactor, value: Any, step: Any) -> Any:
    """Casts the value of a factor to float32, and checks that it is a scalar or of the step's shape."""
    if value is None:
        raise T2TError(f"schedule factor {factor.__name__!r} returns None, not a number: add a return")
    value = ops.cast(value, "float32")
    if tuple(value.shape) not in ((), tuple(step.shape)):
        raise T2TError(f"schedule factor {factor.__name__!r} returns a tensor of shape {tuple(value.shape)}")
    return value


@keras.saving.register_keras_serializable("t2t_revival")
class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """`learning_rate` for a Keras optimizer, which counts micro-batches from 0.

    Args:
        hparams: see `learning_rate`.
        accumulate: micro-batches of one update.

    Raises:
        T2TError: as `learning_rate`.
    """

    def __init__(self, hparams: HParams, accumulate: int = 1) -> None:
        learning_rate(hparams, 1)  # a faulty factor fails here, and not inside the training graph
        self.hparams = hparams
        self.accumulate = accumulate

    def __call__(self, step: Any) -> Any:
        return learning_rate(self.hparams, ops.floor_divide(step, self.accumulate) + 1)

    def get_config(self) -> dict[str, Any]:
        return {"hparams": self.hparams.to_json(), "accumulate": self.accumulate}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Schedule:
        return cls(HParams.from_json(config["hparams"]), config["accumulate"])
