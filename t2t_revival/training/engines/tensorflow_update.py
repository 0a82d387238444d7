"""The update of a `TrainingOptimizer` under TensorFlow, for all replicas of a strategy together.

A replica must not decide by itself: within one, a condition cannot wait for the other replicas. So all that
depends on one, such as whether this micro-batch is the last of an update, runs in the cross-replica context,
in which the variables of all replicas are assigned at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from t2t_revival.utils import keras_hooks


@tf.autograph.experimental.do_not_convert  # it would warn of functions without source code
def apply_gradients(
    optimizer: keras.optimizers.Optimizer, gradients: Sequence[Any], weights: Sequence[Any]
) -> None:
    """Applies a replica's gradients of one micro-batch; to be called by every replica.

    The optimizer is a `TrainingOptimizer` that is built. The caller must add 1 to its `micro_batch_count`.
    """
    all_sums = keras_hooks.gradient_sums(optimizer)  # empty where an update has one micro-batch
    sums = [all_sums[keras_hooks.variable_index(optimizer, weight)].value for weight in weights if all_sums]
    update_if_finite = partial(_update_if_finite, optimizer, [_value(weight) for weight in weights])

    def accumulate(strategy: Any, gradients: list[Any]) -> None:
        for total, gradient in zip(sums, gradients, strict=True):
            strategy.extended.update(
                total, lambda x, y: x.assign_add(tf.convert_to_tensor(y)), (gradient,), group=False
            )

        def update_and_clear() -> None:
            update_if_finite(strategy, sums)
            for total in sums:
                strategy.extended.update(total, lambda x: x.assign(tf.zeros_like(x)), group=False)

        is_last = (keras_hooks.micro_batch_count(optimizer).value + 1) % optimizer.micro_batches == 0
        tf.cond(is_last, update_and_clear, lambda: None)

    across_replicas = accumulate if sums else update_if_finite
    tf.distribute.get_replica_context().merge_call(across_replicas, args=(list(gradients),))


def _update_if_finite(
    optimizer: keras.optimizers.Optimizer, weights: list[Any], strategy: Any, gradients: list[Any]
) -> None:
    """Updates all variables, or none, by one decision for all replicas."""
    pairs = list(zip(gradients, weights, strict=True))
    reduced = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, pairs)
    # Reduced gradients are equal in all replicas, so those of the first one decide. A sum of squares is
    # finite only if every term is, and takes one pass over memory.
    local = [strategy.experimental_local_results(gradient)[0] for gradient in reduced]
    dense = [one.values if isinstance(one, tf.IndexedSlices) else one for one in local]  # rows of embeddings
    is_finite = tf.math.is_finite(tf.add_n(list(map(tf.nn.l2_loss, dense))))
    count, micro_batches = keras_hooks.micro_batch_count(optimizer).value, optimizer.micro_batches
    scale = [variable.value for variable in optimizer.scale_variables]

    def update() -> None:
        update_weight = _weight_update(optimizer, scale[0] * micro_batches if scale else micro_batches)
        for gradient, weight in zip(reduced, weights, strict=True):
            strategy.extended.update(weight, update_weight, args=(gradient,), group=False)
        share = tf.where(count < micro_batches, 1.0, 1.0 - optimizer.ema_decay)  # all of the first weights
        for weight, average in optimizer.moving_averages:
            strategy.extended.update(
                average.value,
                lambda x, y, share: x.assign_add(tf.cast(share, x.dtype) * (tf.convert_to_tensor(y) - x)),
                args=(_value(weight), share),
                group=False,
            )

    def skip() -> None:
        count.assign_sub(micro_batches)

    tf.cond(is_finite, update, skip)
    if scale:
        optimizer.update_loss_scale(is_finite)


def _weight_update(optimizer: keras.optimizers.Optimizer, divisor: Any) -> Callable[[Any, Any], None]:
    """Returns the function of weight and gradient, to be divided, that an update calls for each weight.

    For Adam it is TensorFlow's fused kernel, one pass over memory. Keras's own update makes a dozen, which is
    a tenth of a training step of a base model on a CPU.
    """

    def mean(weight: Any, gradient: Any) -> Any:
        gradient = tf.cast(tf.convert_to_tensor(gradient), weight.dtype)
        return gradient if isinstance(divisor, int) and divisor == 1 else gradient / divisor

    if type(optimizer).update_step is not keras.optimizers.Adam.update_step or optimizer.amsgrad:
        rate = optimizer.learning_rate
        return lambda weight, gradient: optimizer.update_step(mean(weight, gradient), weight, rate)
    step = tf.cast(optimizer.iterations + 1, tf.float32)
    beta_1, beta_2, epsilon, rate = (
        tf.cast(value, tf.float32)
        for value in (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon, optimizer.learning_rate)
    )
    scalars = {
        "beta1_power": tf.pow(beta_1, step),
        "beta2_power": tf.pow(beta_2, step),
        "lr": rate,
        "beta1": beta_1,
        "beta2": beta_2,
        "epsilon": epsilon,
    }

    def update(weight: Any, gradient: Any) -> None:
        momentum, velocity = keras_hooks.adam_moments(optimizer, weight)
        tf.raw_ops.ResourceApplyAdam(
            var=weight.handle,
            m=momentum.value.handle,
            v=velocity.value.handle,
            grad=mean(weight, gradient),
            use_locking=True,
            **{name: tf.cast(scalar, weight.dtype) for name, scalar in scalars.items()},
        )

    return update


def _value(weight: Any) -> Any:
    """The variable of TensorFlow below one of Keras."""
    return weight.value if isinstance(weight, keras.Variable) else weight
