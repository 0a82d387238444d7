"""Section 5.3: Adam, and loss scaling for float16, whose smallest numbers are too large for gradients.

The loss is multiplied by a scale, and the gradients divided by it before the update. An update whose
gradients overflow is skipped, and the scale halved; after `UPDATES_TO_GROW` updates without an overflow it is
doubled (Micikevicius et al., 2018, "Mixed Precision Training").
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.training.schedule import Schedule

FIRST_SCALE = 2.0**15
LEAST_SCALE = 1.0  # a gradient that overflows at this scale is no fault of the scale
UPDATES_TO_GROW = 2000


class LossScale(NamedTuple):
    """The factor of the loss, and the updates done since it changed."""

    scale: float
    updates: int


@keras.saving.register_keras_serializable("t2t_revival")
class FusedAdam(keras.optimizers.Adam):
    """Keras's Adam, with TensorFlow's fused kernel where TensorFlow is the backend.

    The same update in one pass over memory; Keras's own makes a dozen, which is a tenth of a training step
    of a base model on a CPU. An update whose gradients are not all finite is skipped: weights, moments and
    the number of updates stay as they are. Gradients whose squares, which Adam's moments hold, overflow
    count as not finite. With Keras's further options (`clipnorm`, `weight_decay`, `use_ema`, `amsgrad` ...)
    Keras makes the update, and none is skipped.

    Args:
        ema_decay: decay per update of a moving average of each weight, which begins with the weight after the
            first update; for the fused kernel only. 0 keeps none. Keras's `use_ema` would put the averages in
            the weights' place when `fit` ends, so that a training could not go on from there.
        **kwargs: see `keras.optimizers.Adam`.
    """

    def __init__(self, *args: Any, ema_decay: float = 0.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ema_decay = ema_decay
        self._averages: list[Any] = []

    def build(self, var_list: Any) -> None:
        if self.built:
            return
        super().build(var_list)
        if self.ema_decay:
            self._averages = self.add_optimizer_variables(var_list, "average")

    def get_config(self) -> dict[str, Any]:
        own = {"ema_decay": self.ema_decay} if self.ema_decay else {}  # else Keras's Adam takes it too
        return {**super().get_config(), **own}

    @property
    def moving_averages(self) -> list[tuple[Any, Any]]:
        """Each trained weight and its moving average; empty where none are kept."""
        return list(zip(self._trainable_variables, self._averages, strict=True)) if self._averages else []

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

    def learning_rate_at(self, step: Any) -> Any:
        """The learning rate of update number `step`, counted from 1."""
        if not callable(self._learning_rate):
            return self._learning_rate
        return self._learning_rate((step - 1) * self.micro_batches)

    @property
    def moments(self) -> list[Any]:
        """Adam's moments: with the number of updates, all of the optimizer that a checkpoint must hold.

        Accumulated gradients are zero between two updates, so that a training may resume with another
        number of micro-batches for each.
        """
        return [*self._momentums, *self._velocities]

    @property
    def accumulated_gradients(self) -> list[Any]:
        """Keras's sums of the gradients of an update's micro-batches; empty where it has one."""
        return list(self._accumulated_gradients) if self.gradient_accumulation_steps else []

    @property
    def updates(self) -> int:
        """Updates done, without those skipped."""
        return int(self._iterations.numpy()) // self.micro_batches

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one update."""
        return self.gradient_accumulation_steps or 1

    def progress(self) -> dict[str, Any]:
        """Returns "updates" done and the "loss_scale" on the device, as scalars."""
        return {"updates": ops.floor_divide(self._iterations, self.micro_batches), "loss_scale": ops.ones(())}

    @property
    def loss_scale(self) -> Any:
        """The `LossScale`; `None` where losses are not scaled."""
        return None

    def set_updates(self, updates: int) -> None:
        """Sets the number of updates done."""
        self._iterations.assign(updates * self.micro_batches)

    def set_loss_scale(self, scale: float, updates: int) -> None:
        """Sets the `LossScale`, where losses are scaled."""

    def gradient_divisor(self) -> Any:
        """Divisor of the sum of an update's gradients; `None` stands for 1."""
        return self.micro_batches if self.micro_batches > 1 else None

    def after_update(self) -> None:
        """Hook of subclasses, called in the graph of the training step after each update."""

    def after_skipped_update(self) -> None:
        """Takes a skipped update back from `iterations`, to which Keras adds 1 for each micro-batch."""
        self._iterations.value.assign_sub(self.micro_batches)

    @property
    def _uses_fused_kernel(self) -> bool:
        options = (self.clipnorm, self.clipvalue, self.global_clipnorm, self.weight_decay)
        needs_keras = self.amsgrad or self.use_ema or any(option is not None for option in options)
        return keras.backend.backend() == "tensorflow" and not needs_keras

    def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> None:
        if self._uses_fused_kernel:
            self._apply_fused(grads, trainable_variables)
        elif self.ema_decay:
            raise ValueError("ema_decay needs the TensorFlow backend, and none of Keras's further options")
        else:
            super()._backend_apply_gradients(grads, trainable_variables)

    def _apply_fused(self, gradients: Any, variables: Any) -> None:
        from t2t_revival.training.engines.fused_update import FusedUpdate  # TensorFlow only

        FusedUpdate(self, variables).apply(gradients)


@keras.saving.register_keras_serializable("t2t_revival")
class LossScaledAdam(FusedAdam):
    """`FusedAdam` for a model that computes in float16; under TensorFlow, without Keras's extras.

    Keras's `LossScaleOptimizer` decides for each micro-batch, by the gradients of one replica. Here one
    decision is made for each update, by the gradients of all replicas and micro-batches, as in `FusedAdam`.
    """

    def build(self, var_list: Any) -> None:
        if self.built:
            return
        super().build(var_list)
        kind: Any = {"shape": (), "aggregation": "only_first_replica"}
        first = keras.initializers.Constant(FIRST_SCALE)
        self._scale = self.add_variable(name="loss_scale", dtype="float32", initializer=first, **kind)
        self._since_change = self.add_variable(
            name="since_change", dtype="int32", initializer="zeros", **kind
        )

    def progress(self) -> dict[str, Any]:
        return {**super().progress(), "loss_scale": ops.copy(self._scale)}

    @property
    def loss_scale(self) -> LossScale:
        return LossScale(float(self._scale.numpy()), int(self._since_change.numpy()))

    def set_loss_scale(self, scale: float, updates: int) -> None:
        self._scale.assign(scale)
        self._since_change.assign(updates)

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the scale; Keras calls this before it computes gradients."""
        return loss * self._scale

    def gradient_divisor(self) -> Any:
        return self._scale.value * self.micro_batches

    def after_update(self) -> None:
        updates = self._since_change.value + 1
        grows = updates >= UPDATES_TO_GROW
        self._scale.value.assign(ops.where(grows, 2.0, 1.0) * self._scale.value)
        self._since_change.value.assign(ops.where(grows, ops.zeros_like(updates), updates))

    def after_skipped_update(self) -> None:
        super().after_skipped_update()
        self._scale.value.assign(ops.maximum(self._scale.value / 2, LEAST_SCALE))
        self._since_change.value.assign(ops.zeros_like(self._since_change.value))

    def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> None:
        if not self._uses_fused_kernel:
            raise ValueError(
                "LossScaledAdam needs the TensorFlow backend, without clipping, weight decay, EMA and amsgrad"
            )
        super()._backend_apply_gradients(grads, trainable_variables)


def make_optimizer(hparams: HParams, accumulate: int = 1, kind: type[FusedAdam] = FusedAdam) -> FusedAdam:
    """Adam with the learning rate of `Schedule`.

    Args:
        hparams: reads `optimizer_adam_*` and the fields that `Schedule` reads.
        accumulate: micro-batches whose gradients make one update.
        kind: class of the optimizer.
    """
    return kind(
        learning_rate=Schedule(hparams, accumulate),
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        ema_decay=hparams.ema_decay,
        gradient_accumulation_steps=accumulate if accumulate > 1 else None,
        name="adam",
    )
