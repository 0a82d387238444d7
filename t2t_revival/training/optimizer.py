"""Section 5.3: the learning rate; what a training needs of an optimizer; and loss scaling for float16.

The smallest numbers of float16 are too large for gradients. The loss is multiplied by a scale, and the
gradients divided by it before the update. An update whose gradients overflow is skipped, and the scale
halved; after `UPDATES_TO_GROW` updates without an overflow it is doubled (Micikevicius et al., 2018, "Mixed
Precision Training").
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_revival import registration
from t2t_revival.curve_files import ANNEALED
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.utils.keras_hooks import (
    OwnUpdate,
    gradient_sums,
    micro_batch_count,
    trained_weights,
    updates_weights_alone,
)

FIRST_SCALE = 2.0**15
LEAST_SCALE = 1.0  # a gradient that overflows at this scale is no fault of the scale
UPDATES_TO_GROW = 2000


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
        T2TError: a factor is unknown.
    """
    step = ops.cast(step, "float32")
    rate = ops.ones_like(step)
    for factor in registration.schedule_factors(hparams.learning_rate_schedule):
        rate = rate * ops.cast(factor(step, hparams), "float32")
    return rate


def falls_to_zero(hparams: HParams) -> bool:
    """Returns whether the learning rate is at `train_steps` below `ANNEALED` of that after the warm-up."""
    steps = hparams.learning_rate_warmup_steps, hparams.train_steps
    first, last = (float(learning_rate(hparams, step)) for step in steps)
    return last < ANNEALED * first


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
        return {"hparams": dataclasses.asdict(self.hparams), "accumulate": self.accumulate}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Schedule:
        return cls(HParams(**config["hparams"]), config["accumulate"])


class LossScale(NamedTuple):
    """The factor of the loss, and the updates done since it changed: numbers, or scalars on the device."""

    scale: Any
    updates: Any

    def after(self, is_done: Any) -> LossScale:
        """Returns the scale after an update that was done, or skipped."""
        updates = self.updates + 1
        grows = updates >= UPDATES_TO_GROW
        grown = ops.where(grows, 2.0, 1.0) * self.scale
        scale = ops.where(is_done, grown, ops.maximum(self.scale / 2, LEAST_SCALE))
        return LossScale(scale, ops.where(ops.logical_and(is_done, ops.logical_not(grows)), updates, 0))


class TrainingOptimizer(OwnUpdate):
    """All that a training needs of an optimizer: a class before one of Keras's, which updates a weight.

    An update whose gradients are not all finite is skipped: weights, moments and the number of updates stay
    as they are. Gradients whose squares overflow count as not finite. The gradients of an update's
    micro-batches are added up. So it is under TensorFlow and in `JaxEngine`; else Keras does, and skips none.

    Args:
        learning_rate: a number or a schedule.
        ema_decay: decay per update of a moving average of each weight, which begins with the weight after the
            first update; 0 keeps none. Keras's `use_ema` would put the averages in the weights' place when
            `fit` ends, so that a training could not go on from there.
        scales_loss: whether the loss is scaled, for a model that computes in float16. Keras's
            `LossScaleOptimizer` decides for each micro-batch, by the gradients of one replica; here one
            decision is made for each update, by the gradients of all.
        **options: of the other base class, except those that clip gradients, decay weights or average them.

    Attributes:
        moments: with the number of updates, all that a checkpoint must hold. Accumulated gradients are zero
            between two updates, so that a training may resume with another number of micro-batches for each.
    """

    def __init__(
        self, learning_rate: Any = 0.001, ema_decay: float = 0.0, scales_loss: bool = False, **options: Any
    ) -> None:
        super().__init__(learning_rate=learning_rate, **options)
        refused = (self.clipnorm, self.clipvalue, self.global_clipnorm, self.weight_decay)
        if self.use_ema or any(option is not None for option in refused):
            raise T2TError(f"{type(self).__name__} takes no clipping, weight_decay and use_ema: set none")
        if not updates_weights_alone(self):
            raise T2TError(f"{type(self).__name__} updates more than each weight by itself: use another")
        self.ema_decay, self.scales_loss = ema_decay, scales_loss
        self.moments: list[Any] = []
        self._averages: list[Any] = []
        self.scale_variables: list[Any] = []

    def build(self, variables: Any) -> None:
        if self.built:
            return
        before = self.variables
        super().build(variables)
        others = {id(variable) for variable in [*before, *gradient_sums(self)]}
        self.moments = [variable for variable in self.variables if id(variable) not in others]
        if self.ema_decay:
            self._averages = self.add_optimizer_variables(variables, "average")
        if self.scales_loss:
            kind: Any = {"shape": (), "aggregation": "only_first_replica"}
            first = keras.initializers.Constant(FIRST_SCALE)
            self.scale_variables = [
                self.add_variable(name="loss_scale", dtype="float32", initializer=first, **kind),
                self.add_variable(name="since_change", dtype="int32", initializer="zeros", **kind),
            ]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "ema_decay": self.ema_decay, "scales_loss": self.scales_loss}

    def update(self, gradients: Any, weights: Any) -> None:
        """Applies the gradients of a micro-batch to weights; Keras calls this."""
        if keras.backend.backend() == "tensorflow":
            from t2t_revival.training.engines.tensorflow_update import apply_gradients

            apply_gradients(self, gradients, weights)
        elif self.ema_decay or self.scales_loss:
            raise ValueError("ema_decay and scales_loss need the TensorFlow backend, or JaxEngine")
        else:
            super().update(gradients, weights)

    @property
    def moving_averages(self) -> list[tuple[Any, Any]]:
        """Each trained weight and its moving average; empty where none are kept."""
        return list(zip(trained_weights(self), self._averages, strict=True)) if self._averages else []

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Puts the moving averages in the weights' place within the block, where they are kept."""
        own = [(weight, weight.numpy()) for weight, _ in self.moving_averages if self.updates]
        for weight, average in self.moving_averages if own else ():
            weight.assign(average)
        try:
            yield
        finally:
            for weight, values in own:
                weight.assign(values)

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one update."""
        return self.gradient_accumulation_steps or 1

    @property
    def updates(self) -> int:
        """Updates done, without those skipped."""
        return int(micro_batch_count(self).numpy()) // self.micro_batches

    def set_updates(self, updates: int) -> None:
        """Sets the number of updates done."""
        micro_batch_count(self).assign(updates * self.micro_batches)

    def progress(self) -> tuple[Any, Any]:
        """Returns the updates done and the factor of the loss, as scalars on the device."""
        updates = ops.floor_divide(micro_batch_count(self), self.micro_batches)
        return updates, ops.copy(self.scale_variables[0]) if self.scales_loss else ops.ones(())

    @property
    def loss_scale(self) -> LossScale | None:
        """The scale, as numbers; `None` where losses are not scaled."""
        values = (variable.numpy().item() for variable in self.scale_variables)
        return LossScale(*values) if self.scales_loss else None

    def set_loss_scale(self, scale: Any, updates: Any) -> None:
        """Sets the `LossScale`, where losses are scaled."""
        for variable, value in zip(self.scale_variables, (scale, updates), strict=False):
            variable.assign(value)

    def update_loss_scale(self, is_done: Any) -> None:
        """Assigns the scale after an update that was done, or skipped, in TensorFlow's graph."""
        self.set_loss_scale(*LossScale(*self.scale_variables).after(is_done))

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the scale; Keras calls this before it computes gradients."""
        return loss * self.scale_variables[0] if self.scales_loss else loss


@keras.saving.register_keras_serializable("t2t_revival")
class Adam(TrainingOptimizer, keras.optimizers.Adam):
    """Keras's Adam in a training; a model that was compiled with it can be saved and loaded."""


class Bfloat16Products:
    """A class before Keras's Muon, whose products of matrices need few digits (Jordan et al., 2024)."""

    def zeropower_via_newtonschulz5(self, x: Any, steps: int) -> Any:
        step = super().zeropower_via_newtonschulz5(ops.cast(x, "bfloat16"), steps)  # type: ignore[misc]
        return ops.cast(step, x.dtype)


def make_optimizer(hparams: HParams, accumulate: int = 1, dtype: str = "float32") -> TrainingOptimizer:
    """The optimizer that hparams name, with the learning rate of `Schedule`.

    Args:
        hparams: reads `optimizer`, `ema_decay`, and the fields that the optimizer and `Schedule` read.
        accumulate: micro-batches whose gradients make one update.
        dtype: that the model computes in. For float16 the loss is scaled; in bfloat16 Muon multiplies.

    Raises:
        T2TError: the optimizer is unknown, or clips gradients, decays weights or averages them; and as
            `Schedule`.
    """
    plain = registration.optimizer(hparams.optimizer)(hparams)
    kind = type(plain)
    products = (Bfloat16Products,) if kind is keras.optimizers.Muon and dtype == "bfloat16" else ()
    bases = (TrainingOptimizer, *products, kind)
    training_kind: Any = Adam if kind is keras.optimizers.Adam else type(kind.__name__, bases, {})
    settings = {
        "name": hparams.optimizer,
        "learning_rate": Schedule(hparams, accumulate),
        "gradient_accumulation_steps": accumulate if accumulate > 1 else None,
        "ema_decay": hparams.ema_decay,
        "scales_loss": dtype == "float16",
    }
    return training_kind.from_config({**plain.get_config(), **settings})
