"""Section 5.3: the update of `FusedAdam` under JAX, as a function of its state.

Of TensorFlow's, which `fused_update` has, it is the same: gradients of micro-batches are added up, an update
whose gradients are not finite is skipped, and in float16 the loss's scale changes; see `optimizer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from t2t_revival.training.optimizer import LEAST_SCALE, UPDATES_TO_GROW

if TYPE_CHECKING:
    from t2t_revival.training.optimizer import FusedAdam

Arrays = list[jax.Array]


class AdamState(NamedTuple):
    """State of the optimizer; arrays have the shapes of the trained weights.

    Attributes:
        momentums: moving averages of the gradients.
        velocities: those of their squares.
        averages: those of the weights, if they are kept.
        sums: gradients of this update's micro-batches before, if it has several.
        micro_batch: int scalar, micro-batches of this update before.
        updates: int scalar, updates done.
        scale: float scalar, the factor of the loss.
        since_change: int scalar, updates done since it changed.
    """

    momentums: Arrays
    velocities: Arrays
    averages: Arrays
    sums: Arrays
    micro_batch: jax.Array
    updates: jax.Array
    scale: jax.Array
    since_change: jax.Array

    def of_variables(self, optimizer: FusedAdam) -> list[tuple[Any, jax.Array]]:
        """Returns the variables of an optimizer that a checkpoint has, each with its array."""
        moments = zip(optimizer.moments, [*self.momentums, *self.velocities], strict=True)
        averages = [average for _, average in optimizer.moving_averages]
        return [*moments, *zip(averages, self.averages, strict=True)]


def first_state(optimizer: FusedAdam) -> AdamState:
    """Returns the state of an optimizer that is built."""
    moments = [moment.value for moment in optimizer.moments]
    count = len(moments) // 2
    scale = optimizer.loss_scale or (1.0, 0)
    return AdamState(
        moments[:count],
        moments[count:],
        [average.value for _, average in optimizer.moving_averages],
        [jnp.zeros_like(moment) for moment in moments[:count]] if optimizer.micro_batches > 1 else [],
        jnp.int32(0),
        jnp.int32(optimizer.updates),
        jnp.float32(scale[0]),
        jnp.int32(scale[1]),
    )


def apply_adam(
    optimizer: FusedAdam, weights: Arrays, gradients: Arrays, state: AdamState
) -> tuple[Arrays, AdamState]:
    """Applies the gradients of a micro-batch; the last one of an update changes the weights.

    Args:
        optimizer: whose settings count; its variables are neither read nor changed.
        weights: that are trained.
        gradients: of the loss times `state.scale`, in the order of `weights`.
        state: before this micro-batch.

    Returns:
        The weights and the state after it.
    """
    count = optimizer.micro_batches
    if count == 1:
        return _update(optimizer, weights, gradients, state)
    sums = [total + gradient for total, gradient in zip(state.sums, gradients, strict=True)]

    def update() -> tuple[Arrays, AdamState]:
        new_weights, new = _update(optimizer, weights, sums, state)
        zeros = [jnp.zeros_like(total) for total in sums]
        return new_weights, new._replace(sums=zeros, micro_batch=jnp.zeros_like(state.micro_batch))

    def keep() -> tuple[Arrays, AdamState]:
        return weights, state._replace(sums=sums, micro_batch=state.micro_batch + 1)

    return jax.lax.cond(state.micro_batch + 1 == count, update, keep)


def _update(
    optimizer: FusedAdam, weights: Arrays, gradients: Arrays, state: AdamState
) -> tuple[Arrays, AdamState]:
    """Makes an update, unless a gradient, or its square, is not finite."""
    finite = jnp.isfinite(sum(jnp.sum(jnp.square(gradient)) for gradient in gradients))
    number = state.updates + 1
    rate = optimizer.learning_rate_at(number)
    divisor = state.scale * optimizer.micro_batches
    beta_1, beta_2, epsilon = optimizer.beta_1, optimizer.beta_2, optimizer.epsilon
    step = number.astype("float32")
    rate = rate * jnp.sqrt(1 - jnp.power(beta_2, step)) / (1 - jnp.power(beta_1, step))

    def adam(weight: Any, momentum: Any, velocity: Any, gradient: Any) -> tuple[Any, Any, Any]:
        gradient = gradient / divisor
        momentum = momentum + (gradient - momentum) * (1 - beta_1)
        velocity = velocity + (jnp.square(gradient) - velocity) * (1 - beta_2)
        return weight - rate * momentum / (jnp.sqrt(velocity) + epsilon), momentum, velocity

    before = weights, state.momentums, state.velocities
    after = zip(*map(adam, *before, gradients), strict=True)
    new_weights, momentums, velocities = (
        [jnp.where(finite, new, old) for new, old in zip(group, olds, strict=True)]
        for group, olds in zip(after, before, strict=True)
    )
    share = jnp.where(finite, jnp.where(state.updates == 0, 1.0, 1.0 - optimizer.ema_decay), 0.0)
    averages = [
        average + share * (weight - average)
        for weight, average in zip(new_weights, state.averages, strict=False)
    ]
    scale, since_change = state.scale, state.since_change
    if optimizer.loss_scale:
        grown = since_change + 1 >= UPDATES_TO_GROW
        lower = jnp.maximum(scale / 2, LEAST_SCALE)
        scale = jnp.where(finite, jnp.where(grown, 2 * scale, scale), lower)
        since_change = jnp.where(finite & ~grown, since_change + 1, 0)
    updates = jnp.where(finite, number, state.updates)
    new = state._replace(momentums=momentums, velocities=velocities, averages=averages, updates=updates)
    return new_weights, new._replace(scale=scale, since_change=since_change)
