"""Section 5.3: Adam."""

from __future__ import annotations

from typing import Any

import keras

from t2t_revival.hparams import HParams
from t2t_revival.training.schedule import Schedule


@keras.saving.register_keras_serializable("t2t_revival")
class FusedAdam(keras.optimizers.Adam):
    """Keras's Adam, with TensorFlow's fused kernel where TensorFlow is the backend.

    The same update in one pass over memory; Keras's own makes a dozen, which is a tenth of a training step
    of a base model on a CPU. An update whose gradients are not all finite is skipped: weights, moments and
    the number of updates stay as they are. Gradients whose squares, which Adam's moments hold, overflow
    count as not finite. With Keras's further options (`clipnorm`, `weight_decay`, `use_ema`, `amsgrad` ...)
    Keras makes the update, and none is skipped.
    """

    def learning_rate_at(self, step: int) -> Any:
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
    def updates(self) -> int:
        """Updates done, without those skipped."""
        return int(self._iterations.numpy()) // self.micro_batches

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one update."""
        return self.gradient_accumulation_steps or 1

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
        else:
            super()._backend_apply_gradients(grads, trainable_variables)

    def _apply_fused(self, gradients: Any, variables: Any) -> None:
        from t2t_revival.training.fused_update import FusedUpdate  # TensorFlow only

        FusedUpdate(self, variables).apply(gradients)


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
        gradient_accumulation_steps=accumulate if accumulate > 1 else None,
        name="adam",
    )
