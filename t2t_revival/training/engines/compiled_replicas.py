"""A step of several replicas under TensorFlow that XLA compiles: losses and gradients of each, by themselves.

Sums over replicas, which XLA cannot compile for TensorFlow, and the optimizer run after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from t2t_revival.training.model import TrainingTransformer

Logs = dict[str, Any]


def make_step(model: TrainingTransformer, strategy: tf.distribute.Strategy) -> Callable[[Any], Logs]:
    """Returns a function that takes a distributed iterator, trains on its next batch, and returns scalars.

    They have the names of `StepLogs`.
    """
    gradients = tf.function(
        lambda *batch: _losses_and_gradients(model, *batch), jit_compile=True, autograph=False
    )

    def replica_step(x: Any, y: Any, weights: Any) -> Logs:
        losses, own = gradients(x, y, weights)
        model.optimizer.apply_gradients(zip(own, model.trainable_variables, strict=True))
        return {**losses, **model.optimizer.progress()}

    def step(iterator: Any) -> Logs:
        logs = strategy.run(replica_step, args=next(iterator))
        own = {name: strategy.experimental_local_results(value)[0] for name, value in logs.items()}
        sums = {name: strategy.reduce("SUM", logs[name], axis=None) for name in ("loss", "cross_entropy")}
        return {**own, **sums}

    return tf.function(step, autograph=False, reduce_retracing=True)


def _losses_and_gradients(model: TrainingTransformer, x: Any, y: Any, weights: Any) -> tuple[Logs, list[Any]]:
    """Computes this replica's part of the losses, and of the gradients."""
    variables = [variable.value for variable in model.trainable_variables]
    with tf.GradientTape() as tape:
        loss, plain = model.token_losses(x, y, model(x, training=True), weights)
        scaled = model.optimizer.scale_loss(loss)
    return {"loss": loss, "cross_entropy": plain}, tape.gradient(scaled, variables)
