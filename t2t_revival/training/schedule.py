"""Section 5.3: the learning rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_revival.hparams import HParams

Factor = Callable[[HParams, Any], Any]


def _constant(h: HParams, step: Any) -> Any:
    return h.learning_rate_constant


def _linear_warmup(h: HParams, step: Any) -> Any:
    return ops.minimum(1.0, step / h.learning_rate_warmup_steps)


def _rsqrt_decay(h: HParams, step: Any) -> Any:
    return ops.rsqrt(ops.maximum(step, float(h.learning_rate_warmup_steps)))


def _rsqrt_hidden_size(h: HParams, step: Any) -> Any:
    return h.hidden_size**-0.5


def _legacy(h: HParams, step: Any) -> Any:
    """T2T v1 and v2: equation (3), one step ahead."""
    warmup = h.learning_rate_warmup_steps
    return h.hidden_size**-0.5 * ops.minimum((step + 1.0) * warmup**-1.5, ops.rsqrt(step + 1.0))


FACTORS: dict[str, Factor] = {
    "constant": _constant,
    "linear_warmup": _linear_warmup,
    "rsqrt_decay": _rsqrt_decay,
    "rsqrt_hidden_size": _rsqrt_hidden_size,
    "legacy": _legacy,
}


def learning_rate(hparams: HParams, step: Any) -> Any:
    """The learning rate of an update.

    With the paper's schedule and a constant of 1 this is equation (3):
    d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    Args:
        hparams: reads `learning_rate_schedule`, a product of factors' names as in T2T
            (`utils/learning_rate.py`), and what these factors read.
        step: number of the update, counted from 1.
    """
    step = ops.cast(step, "float32")
    rate = ops.ones_like(step)
    for name in hparams.learning_rate_schedule.split("*"):
        rate = rate * FACTORS[name](hparams, step)
    return rate


@keras.saving.register_keras_serializable("t2t_revival")
class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """`learning_rate` for a Keras optimizer, which counts micro-batches from 0.

    Args:
        hparams: see `learning_rate`.
        accumulate: micro-batches of one update.
    """

    def __init__(self, hparams: HParams, accumulate: int = 1) -> None:
        self.hparams = hparams
        self.accumulate = accumulate

    def __call__(self, step: Any) -> Any:
        return learning_rate(self.hparams, ops.floor_divide(step, self.accumulate) + 1)

    def get_config(self) -> dict[str, Any]:
        return {"hparams": self.hparams.to_json(), "accumulate": self.accumulate}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Schedule:
        return cls(HParams.from_json(config["hparams"]), config["accumulate"])
