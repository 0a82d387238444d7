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
    of a base model on a CPU.
    """

    def learning_rate_at(self, step: int) -> Any:
        """The learning rate of update number `step`, counted from 1."""
        if not callable(self._learning_rate):
            return self._learning_rate
        return self._learning_rate((step - 1) * (self.gradient_accumulation_steps or 1))

    @property
    def moments(self) -> list[Any]:
        """Adam's moments: what a checkpoint must hold of the optimizer besides the number of updates.

        Accumulated gradients are zero between two updates, so that a training may go on with another
        number of micro-batches for each.
        """
        return [*self._momentums, *self._velocities]

    def continue_after(self, step: int) -> None:
        """Sets the number of updates done."""
        self._iterations.assign(step * (self.gradient_accumulation_steps or 1))

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        if keras.backend.backend() != "tensorflow" or self.amsgrad:
            super().update_step(gradient, variable, learning_rate)
            return
        import tensorflow as tf

        def handle(weight: Any) -> Any:
            return (weight.value if isinstance(weight, keras.Variable) else weight).handle

        index = self._get_variable_index(variable)
        step = tf.cast(self.iterations + 1, variable.dtype)
        beta_1, beta_2, epsilon, rate = (
            tf.cast(value, variable.dtype)
            for value in (self.beta_1, self.beta_2, self.epsilon, learning_rate)
        )
        tf.raw_ops.ResourceApplyAdam(
            var=handle(variable),
            m=handle(self._momentums[index]),
            v=handle(self._velocities[index]),
            beta1_power=tf.pow(beta_1, step),
            beta2_power=tf.pow(beta_2, step),
            lr=rate,
            beta1=beta_1,
            beta2=beta_2,
            epsilon=epsilon,
            grad=tf.cast(gradient, variable.dtype),
            use_locking=True,
        )


def make_optimizer(hparams: HParams, accumulate: int = 1) -> FusedAdam:
    """Adam with the learning rate of `Schedule`.

    Args:
        hparams: reads `optimizer_adam_*` and what `Schedule` reads.
        accumulate: micro-batches whose gradients make one update.
    """
    return FusedAdam(
        learning_rate=Schedule(hparams, accumulate),
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        gradient_accumulation_steps=accumulate if accumulate > 1 else None,
        name="adam",
    )
