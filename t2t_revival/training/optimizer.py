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
    of a base model on a CPU. An update whose gradients are not all finite numbers is left out: weights,
    moments and the number of updates stay as they are. Gradients so large that their squares, which Adam's
    moments hold, are not finite count as such. What Keras's Adam has besides (`clipnorm`, `weight_decay`,
    `use_ema`, `amsgrad` ...) is done by Keras, and no update is left out then.
    """

    def learning_rate_at(self, step: int) -> Any:
        """The learning rate of update number `step`, counted from 1."""
        if not callable(self._learning_rate):
            return self._learning_rate
        return self._learning_rate((step - 1) * self._micro_batches)

    @property
    def moments(self) -> list[Any]:
        """Adam's moments: what a checkpoint must hold of the optimizer besides the number of updates.

        Accumulated gradients are zero between two updates, so that a training may go on with another
        number of micro-batches for each.
        """
        return [*self._momentums, *self._velocities]

    @property
    def updates(self) -> int:
        """Updates done; what was left out does not count."""
        return int(self._iterations.numpy()) // self._micro_batches

    @property
    def loss_scale(self) -> Any:
        """A `LossScale`; None where losses are not scaled."""
        return None

    def continue_after(self, step: int) -> None:
        """Sets the number of updates done."""
        self._iterations.assign(step * self._micro_batches)

    def continue_with_scale(self, scale: float, updates: int) -> None:
        """Sets the `LossScale`, where losses are scaled."""

    @property
    def _micro_batches(self) -> int:
        """Of one update."""
        return self.gradient_accumulation_steps or 1

    @property
    def _is_plain(self) -> bool:
        clips = (self.clipnorm, self.clipvalue, self.global_clipnorm, self.weight_decay)
        extras = self.amsgrad or self.use_ema or any(clip is not None for clip in clips)
        return keras.backend.backend() == "tensorflow" and not extras

    def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> None:
        if not self._is_plain:
            super()._backend_apply_gradients(grads, trainable_variables)
            return
        import tensorflow as tf

        # All that depends on a condition happens outside of the replicas, which could not wait for each other
        # inside of one.
        indices = [self._get_variable_index(variable) for variable in trainable_variables]
        weights = [
            weight.value if isinstance(weight, keras.Variable) else weight for weight in trainable_variables
        ]
        replica = tf.distribute.get_replica_context()
        replica.merge_call(self._with_all_replicas, args=(list(grads), weights, indices))

    def _with_all_replicas(
        self, strategy: Any, gradients: list[Any], weights: list[Any], indices: list[int]
    ) -> None:
        """Takes note of the gradients of a micro-batch; after the last one of an update, updates."""
        import tensorflow as tf

        if not self.gradient_accumulation_steps:
            self._update_if_finite(strategy, gradients, weights, indices)
            return
        sums = [self._accumulated_gradients[index].value for index in indices]
        for total, gradient in zip(sums, gradients, strict=True):
            strategy.extended.update(total, _add, args=(gradient,), group=False)

        def update() -> None:
            self._update_if_finite(strategy, sums, weights, indices)
            for total in sums:
                strategy.extended.update(total, _clear, group=False)

        tf.cond((self._iterations.value + 1) % self._micro_batches == 0, update, lambda: None)

    def _update_if_finite(
        self, strategy: Any, gradients: list[Any], weights: list[Any], indices: list[int]
    ) -> None:
        """One decision for all replicas, from the sums of their gradients over replicas and micro-batches."""
        import tensorflow as tf

        pairs = list(zip(gradients, weights, strict=True))
        reduced = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, pairs)
        own = [strategy.experimental_local_results(gradient)[0] for gradient in reduced]
        squares = tf.add_n([tf.nn.l2_loss(_values(gradient)) for gradient in own])

        def update() -> None:
            numbers, divisor = self._numbers_of_update(), self._divisor()
            for gradient, weight, index in zip(reduced, weights, indices, strict=True):
                state = (self._momentums[index].value, self._velocities[index].value, numbers, divisor)
                strategy.extended.update(weight, self._fused, args=(gradient, *state), group=False)
            self._note_update()

        tf.cond(tf.math.is_finite(squares), update, self._note_left_out)

    def _divisor(self) -> Any:
        """Of the sum of an update's gradients; None for 1."""
        return self._micro_batches if self._micro_batches > 1 else None

    def _note_update(self) -> None:
        """What a subclass does after an update, besides."""

    def _note_left_out(self) -> None:
        self._iterations.value.assign_sub(self._micro_batches)  # Keras adds 1 for each micro-batch

    def _numbers_of_update(self) -> dict[str, Any]:
        """What `ResourceApplyAdam` needs besides a weight, its moments and its gradient; float32."""
        import tensorflow as tf

        step = tf.cast(self.iterations + 1, tf.float32)
        beta_1, beta_2, epsilon, rate = (
            tf.cast(value, tf.float32)
            for value in (self.beta_1, self.beta_2, self.epsilon, self.learning_rate)
        )
        powers = {"beta1_power": tf.pow(beta_1, step), "beta2_power": tf.pow(beta_2, step)}
        return {**powers, "lr": rate, "beta1": beta_1, "beta2": beta_2, "epsilon": epsilon}

    def _fused(
        self,
        weight: Any,
        gradient: Any,
        momentum: Any,
        velocity: Any,
        numbers: dict[str, Any],
        divisor: Any,
    ) -> None:
        import tensorflow as tf

        gradient = tf.cast(tf.convert_to_tensor(gradient), weight.dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=weight.handle,
            m=momentum.handle,
            v=velocity.handle,
            grad=gradient if divisor is None else gradient / divisor,
            use_locking=True,
            **{name: tf.cast(number, weight.dtype) for name, number in numbers.items()},
        )


def _add(total: Any, gradient: Any) -> None:
    import tensorflow as tf

    total.assign_add(tf.convert_to_tensor(gradient))


def _clear(total: Any) -> None:
    import tensorflow as tf

    total.assign(tf.zeros_like(total))


def _values(gradient: Any) -> Any:
    """The numbers of a gradient, which for an embedding may be those of some rows."""
    import tensorflow as tf

    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def make_optimizer(hparams: HParams, accumulate: int = 1, kind: type[FusedAdam] = FusedAdam) -> FusedAdam:
    """Adam with the learning rate of `Schedule`.

    Args:
        hparams: reads `optimizer_adam_*` and what `Schedule` reads.
        accumulate: micro-batches whose gradients make one update.
        kind: of Adam.
    """
    return kind(
        learning_rate=Schedule(hparams, accumulate),
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        gradient_accumulation_steps=accumulate if accumulate > 1 else None,
        name="adam",
    )
