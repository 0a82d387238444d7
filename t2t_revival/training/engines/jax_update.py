"""Loss and update under JAX: the loss in blocks of tokens, with the logits of one at a time in memory.

The update of a `TrainingOptimizer`, a function of its state, is that of `tensorflow_update`: gradients of
micro-batches are added up, an update whose gradients are not finite is skipped, and in float16 the loss's
scale changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import keras
from jax.sharding import Mesh, PartitionSpec

from t2t_revival.training.optimizer import LossScale
from t2t_revival.utils.keras_hooks import micro_batch_count, trained_weights

if TYPE_CHECKING:
    from t2t_revival.training.optimizer import TrainingOptimizer


Arrays = list[jax.Array]
BLOCK = 2048  # tokens of a device
Sums = tuple[jax.Array, jax.Array]
LossSums = Callable[[jax.Array, jax.Array, jax.Array, jax.Array], Sums]
"""A loss and a figure without gradient, scalars summed over tokens, of x [tokens, hidden], embeddings, labels
and weights [tokens]."""


def in_blocks(loss_sums: LossSums, mesh: Mesh, size: int = BLOCK) -> LossSums:
    """Returns `loss_sums` computed block by block, with the gradients of each block at once.

    What is kept for the backward pass is the gradient, [tokens, hidden] and [vocab, hidden], in place of
    probabilities [tokens, vocab]; no product is computed twice.

    Args:
        loss_sums: of its two results, only the loss has a gradient.
        mesh: of one axis, over whose devices tokens are split; each has blocks of its own.
        size: tokens of a device from which its part is split, and of a block.
    """

    @jax.custom_vjp
    def total(*arguments: jax.Array) -> Sums:
        return forward(*arguments)[0]

    def forward(*arguments: jax.Array) -> tuple[Sums, Any]:
        if mesh.size == 1:
            return _sums_and_gradients(loss_sums, size, *arguments)
        (axis,) = mesh.axis_names
        split, everywhere = PartitionSpec(axis), PartitionSpec()

        def of_device(*own: jax.Array) -> tuple[Sums, Any]:
            sums, (dx, de) = _sums_and_gradients(loss_sums, size, *own)
            return jax.lax.psum(sums, axis), (dx, jax.lax.psum(de, axis))

        shared = jax.shard_map(
            of_device,
            mesh=mesh,
            in_specs=(split, everywhere, split, split),
            out_specs=((everywhere, everywhere), (split, everywhere)),
            check_vma=False,
        )
        return shared(*arguments)

    def backward(gradients: tuple[jax.Array, jax.Array], upstream: Sums) -> tuple[Any, ...]:
        dx, de = gradients
        return (dx.astype(jnp.float32) * upstream[0]).astype(dx.dtype), de * upstream[0], None, None

    total.defvjp(forward, backward)
    return total


def _sums_and_gradients(
    loss_sums: LossSums, size: int, x: jax.Array, embeddings: jax.Array, *per_token: jax.Array
) -> tuple[Sums, Any]:
    """Returns the sums, and the gradients of x and embeddings."""
    gradient = jax.value_and_grad(loss_sums, argnums=(0, 1), has_aux=True)
    tokens = len(x)
    if tokens <= size:
        return gradient(x, embeddings, *per_token)
    blocks = jax.tree.map(partial(_blocks, size), (x, *per_token))  # padded by tokens of weight 0

    def add_block(totals: Any, block: Any) -> tuple[Any, jax.Array]:
        x, *per_token = block
        sums, (dx, de) = gradient(x, embeddings, *per_token)
        return jax.tree.map(jnp.add, totals, (sums, de)), dx

    none = jnp.zeros((), jnp.float32)
    (sums, de), dx = jax.lax.scan(add_block, ((none, none), jnp.zeros_like(embeddings)), blocks)
    return sums, (jnp.reshape(dx, (-1, x.shape[1]))[:tokens], de)


def _blocks(size: int, array: jax.Array) -> jax.Array:
    """[tokens, ...] -> [blocks, size, ...], the last one padded by zeros."""
    padding = [(0, -len(array) % size), *[(0, 0)] * (array.ndim - 1)]
    return jnp.reshape(jnp.pad(array, padding), (-1, size, *array.shape[1:]))


class OptimizerState(NamedTuple):
    """State of the optimizer; arrays have the shapes of the trained weights.

    Attributes:
        moments: of the gradients.
        averages: moving averages of the weights, if they are kept.
        sums: gradients of this update's micro-batches before, if it has several.
        micro_batch: int scalar, micro-batches of this update before.
        updates: int scalar, updates done.
        loss_scale: of scalars.
    """

    moments: Arrays
    averages: Arrays
    sums: Arrays
    micro_batch: jax.Array
    updates: jax.Array
    loss_scale: LossScale

    def of_variables(self, optimizer: TrainingOptimizer) -> list[tuple[Any, jax.Array]]:
        """Returns the variables of an optimizer that a checkpoint has, each with its array."""
        averages = [average for _, average in optimizer.moving_averages]
        return list(zip([*optimizer.moments, *averages], [*self.moments, *self.averages], strict=True))


def first_state(optimizer: TrainingOptimizer) -> OptimizerState:
    """Returns the state of an optimizer that is built."""
    scale, updates = optimizer.loss_scale or (1.0, 0)
    weights = trained_weights(optimizer) if optimizer.micro_batches > 1 else []
    return OptimizerState(
        [moment.value for moment in optimizer.moments],
        [average.value for _, average in optimizer.moving_averages],
        [jnp.zeros_like(weight.value) for weight in weights],
        jnp.int32(0),
        jnp.int32(optimizer.updates),
        LossScale(jnp.float32(scale), jnp.int32(updates)),
    )


def apply_gradients(
    optimizer: TrainingOptimizer, weights: Arrays, gradients: Arrays, state: OptimizerState
) -> tuple[Arrays, OptimizerState]:
    """Applies the gradients of a micro-batch; the last one of an update changes the weights.

    Args:
        optimizer: whose settings count; its variables are neither read nor changed.
        weights: that are trained.
        gradients: of the loss times the scale, in the order of `weights`.
        state: before this micro-batch.

    Returns:
        The weights and the state after it.
    """
    count = optimizer.micro_batches
    if count == 1:
        return _update(optimizer, weights, gradients, state)
    sums = [total + gradient for total, gradient in zip(state.sums, gradients, strict=True)]

    def update() -> tuple[Arrays, OptimizerState]:
        new_weights, new = _update(optimizer, weights, sums, state)
        zeros = [jnp.zeros_like(total) for total in sums]
        return new_weights, new._replace(sums=zeros, micro_batch=jnp.zeros_like(state.micro_batch))

    def keep() -> tuple[Arrays, OptimizerState]:
        return weights, state._replace(sums=sums, micro_batch=state.micro_batch + 1)

    return jax.lax.cond(state.micro_batch + 1 == count, update, keep)


def _update(
    optimizer: TrainingOptimizer, weights: Arrays, gradients: Arrays, state: OptimizerState
) -> tuple[Arrays, OptimizerState]:
    """Makes an update, unless a gradient, or its square, is not finite."""
    is_finite = jnp.isfinite(sum(jnp.sum(jnp.square(gradient)) for gradient in gradients))
    variables = [*trained_weights(optimizer), *optimizer.moments]
    before = [*weights, *state.moments]
    count = micro_batch_count(optimizer), state.updates * optimizer.micro_batches
    divisor = state.loss_scale.scale * optimizer.micro_batches
    with keras.StatelessScope([*zip(variables, before, strict=True), count]) as scope:
        rate = optimizer.learning_rate
        for weight, gradient in zip(trained_weights(optimizer), gradients, strict=True):
            optimizer.update_step(gradient / divisor, weight, rate)
    after = map(scope.get_current_value, variables)
    arrays = [jnp.where(is_finite, new, old) for new, old in zip(after, before, strict=True)]
    weights, moments = arrays[: len(weights)], arrays[len(weights) :]
    share = jnp.where(is_finite, jnp.where(state.updates == 0, 1.0, 1.0 - optimizer.ema_decay), 0.0)
    averages = [
        average + share * (weight - average) for weight, average in zip(weights, state.averages, strict=False)
    ]
    scale = state.loss_scale.after(is_finite) if optimizer.scales_loss else state.loss_scale
    updates = jnp.where(is_finite, state.updates + 1, state.updates)
    return weights, state._replace(moments=moments, averages=averages, updates=updates, loss_scale=scale)
