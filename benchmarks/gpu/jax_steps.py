"""Training steps and matrix products under JAX, without TensorFlow."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import keras
from gpu.examples import Batch


def accelerator() -> str | None:
    """Returns the first GPU's name, or `None`."""
    device = jax.local_devices()[0]
    return device.device_kind if device.platform == "gpu" else None


def versions() -> str:
    """Returns the versions of Keras and the backend."""
    return f"Keras {keras.__version__}, JAX {jax.__version__}"


def matmul(size: int) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Returns a function that multiplies two random bfloat16 matrices, and one that waits for a result."""
    keys = jax.random.split(jax.random.key(1))
    left, right = (jax.random.normal(key, (size, size), jnp.bfloat16) for key in keys)
    product = jax.jit(jnp.matmul)
    return lambda: product(left, right), jax.block_until_ready


def peak_memory() -> int | None:
    """Returns the peak of the GPU memory of this process in bytes, `None` without a GPU."""
    statistics = jax.local_devices()[0].memory_stats()
    return statistics["peak_bytes_in_use"] if statistics else None


class Steps:
    """Keras's training step, called without `fit`.

    Args:
        model: compiled.
        batches: repeated in this order; copied to the device first.
        donate: let a step overwrite the previous state.
    """

    def __init__(self, model: Any, batches: list[Batch], donate: bool) -> None:
        self._step = jax.jit(model.train_step, donate_argnums=(0,) if donate else ())
        variables = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        self._state: Any = tuple([variable.value for variable in group] for group in variables)
        self._logs: dict[str, Any] = {}
        examples = (({"inputs": b.inputs, "targets": b.targets}, b.targets, b.weights) for b in batches)
        self._examples = itertools.cycle([jax.device_put(example) for example in examples])

    def step(self) -> None:
        """Starts the step of one micro-batch."""
        self._logs, self._state = self._step(self._state, next(self._examples))

    def loss(self) -> float:
        """Waits for all steps and returns their mean loss."""
        jax.block_until_ready(self._state)
        return float(self._logs["loss"])
