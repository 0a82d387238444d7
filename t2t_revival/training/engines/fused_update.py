"""The update of `FusedAdam` by TensorFlow's fused kernel, for all replicas of a strategy together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from t2t_revival.utils.keras_hooks import variable_index

if TYPE_CHECKING:
    from t2t_revival.training.optimizer import FusedAdam


class FusedUpdate:
    """One update of an optimizer, which skips it if a gradient is not finite.

    A replica must not decide by itself: within one, a condition cannot wait for the other replicas. So all
    that depends on one, such as whether this micro-batch is the last of an update, runs in the cross-replica
    context, in which the variables of all replicas are assigned at once. The optimizer must be built.
    """

    def __init__(self, optimizer: FusedAdam, variables: Sequence[Any]) -> None:
        indices = [variable_index(optimizer, variable) for variable in variables]
        self._optimizer = optimizer
        self._weights = [v.value if isinstance(v, keras.Variable) else v for v in variables]
        self._momentums = [optimizer._momentums[index].value for index in indices]
        self._velocities = [optimizer._velocities[index].value for index in indices]
        self._averaged: list[tuple[Any, Any]] = []  # weights and their moving averages, if they are kept
        if optimizer.ema_decay:
            averages = [optimizer._averages[index].value for index in indices]
            self._averaged = list(zip(self._weights, averages, strict=True))
        self._sums: list[Any] = []  # of the gradients of an update's micro-batches, if it has several
        if optimizer.gradient_accumulation_steps:
            self._sums = [optimizer._accumulated_gradients[index].value for index in indices]

    @tf.autograph.experimental.do_not_convert  # it would warn of hooks without a body
    def apply(self, gradients: Sequence[Any]) -> None:
        """Applies a replica's gradients of one micro-batch; to be called by every replica."""
        across_replicas = self._accumulate if self._sums else self._update_if_finite
        tf.distribute.get_replica_context().merge_call(across_replicas, args=(list(gradients),))

    def _accumulate(self, strategy: Any, gradients: list[Any]) -> None:
        """Adds gradients to the sums; after the last micro-batch of an update, updates and clears them."""
        for total, gradient in zip(self._sums, gradients, strict=True):
            strategy.extended.update(
                total, lambda x, y: x.assign_add(tf.convert_to_tensor(y)), (gradient,), group=False
            )

        def update_and_clear() -> None:
            self._update_if_finite(strategy, self._sums)
            for total in self._sums:
                strategy.extended.update(total, lambda x: x.assign(tf.zeros_like(x)), group=False)

        optimizer = self._optimizer
        is_last = (optimizer._iterations.value + 1) % optimizer.micro_batches == 0
        tf.cond(is_last, update_and_clear, lambda: None)

    def _update_if_finite(self, strategy: Any, gradients: list[Any]) -> None:
        """Updates all variables, or none, by one decision for all replicas."""
        pairs = list(zip(gradients, self._weights, strict=True))
        reduced = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, pairs)
        # Reduced gradients are equal in all replicas, so those of the first one decide. A sum of squares is
        # finite only if every term is, and takes one pass over memory.
        local = [strategy.experimental_local_results(gradient)[0] for gradient in reduced]
        sum_of_squares = tf.add_n([tf.nn.l2_loss(_values(gradient)) for gradient in local])

        def update() -> None:
            scalars, divisor = self._scalars(), self._optimizer.gradient_divisor()
            variables = zip(reduced, self._weights, self._momentums, self._velocities, strict=True)
            for gradient, weight, momentum, velocity in variables:
                arguments = (gradient, momentum, velocity, scalars, divisor)
                strategy.extended.update(weight, _apply_adam, args=arguments, group=False)
            share = self._share_of_weight()
            for weight, average in self._averaged:
                strategy.extended.update(average, _move, args=(weight, share), group=False)
            self._optimizer.after_update()

        tf.cond(tf.math.is_finite(sum_of_squares), update, self._optimizer.after_skipped_update)

    def _share_of_weight(self) -> Any:
        """The share of the weight in its new average: all of it after the first update."""
        optimizer = self._optimizer
        is_first = optimizer._iterations.value < optimizer.micro_batches
        return tf.where(is_first, 1.0, 1.0 - optimizer.ema_decay)

    def _scalars(self) -> dict[str, Any]:
        """Arguments of `ResourceApplyAdam` that are the same for all weights, float32."""
        optimizer = self._optimizer
        step = tf.cast(optimizer.iterations + 1, tf.float32)
        beta_1, beta_2, epsilon, rate = (
            tf.cast(value, tf.float32)
            for value in (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon, optimizer.learning_rate)
        )
        powers = {"beta1_power": tf.pow(beta_1, step), "beta2_power": tf.pow(beta_2, step)}
        return {**powers, "lr": rate, "beta1": beta_1, "beta2": beta_2, "epsilon": epsilon}


def _apply_adam(
    weight: Any, gradient: Any, momentum: Any, velocity: Any, scalars: dict[str, Any], divisor: Any
) -> None:
    """Updates a weight and its moments by the gradient, divided by `divisor` unless that is `None`."""
    gradient = tf.cast(tf.convert_to_tensor(gradient), weight.dtype)
    tf.raw_ops.ResourceApplyAdam(
        var=weight.handle,
        m=momentum.handle,
        v=velocity.handle,
        grad=gradient if divisor is None else gradient / divisor,
        use_locking=True,
        **{name: tf.cast(scalar, weight.dtype) for name, scalar in scalars.items()},
    )


def _move(average: Any, weight: Any, share: Any) -> None:
    """Moves an average towards its weight."""
    average.assign_add(tf.cast(share, average.dtype) * (tf.convert_to_tensor(weight) - average))


def _values(gradient: Any) -> Any:
    """The numbers of a gradient, which for an embedding may be those of some rows."""
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
