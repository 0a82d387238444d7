"""Section 5.4 under JAX: the loss in blocks of tokens, with the logits of one at a time in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

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
