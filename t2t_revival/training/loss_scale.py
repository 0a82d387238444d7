"""Loss scaling for float16, whose smallest numbers are too large for gradients.

The loss is multiplied by a scale, and the gradients divided by it before the update. An update whose
gradients overflow is skipped, and the scale halved; after `UPDATES_TO_GROW` updates without an overflow it is
doubled (Micikevicius et al., 2018, "Mixed Precision Training").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_revival.training.optimizer import FusedAdam

FIRST = 2.0**15
LEAST = 1.0  # a gradient that overflows at this scale is no fault of the scale
UPDATES_TO_GROW = 2000


class LossScale(NamedTuple):
    """The factor of the loss, and the updates done since it changed."""

    scale: float
    updates: int


@keras.saving.register_keras_serializable("t2t_revival")
class LossScaledAdam(FusedAdam):
    """`FusedAdam` for a model that computes in float16; under TensorFlow, without Keras's extras.

    Keras's `LossScaleOptimizer` decides for each micro-batch, by the gradients of one replica. Here one
    decision is made for each update, by the gradients of all replicas and micro-batches, as in `FusedAdam`.
    """

    def build(self, var_list: Any) -> None:
        if self.built:
            return
        super().build(var_list)
        kind: Any = {"shape": (), "aggregation": "only_first_replica"}
        first = keras.initializers.Constant(FIRST)
        self._scale = self.add_variable(name="loss_scale", dtype="float32", initializer=first, **kind)
        self._since_change = self.add_variable(
            name="since_change", dtype="int64", initializer="zeros", **kind
        )

    @property
    def loss_scale(self) -> LossScale:
        return LossScale(float(self._scale.numpy()), int(self._since_change.numpy()))

    def set_loss_scale(self, scale: float, updates: int) -> None:
        self._scale.assign(scale)
        self._since_change.assign(updates)

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the scale; Keras calls this before it computes gradients."""
        return loss * self._scale

    def gradient_divisor(self) -> Any:
        return self._scale.value * self.micro_batches

    def after_update(self) -> None:
        updates = self._since_change.value + 1
        grows = updates >= UPDATES_TO_GROW
        self._scale.value.assign(ops.where(grows, 2.0, 1.0) * self._scale.value)
        self._since_change.value.assign(ops.where(grows, ops.zeros_like(updates), updates))

    def after_skipped_update(self) -> None:
        super().after_skipped_update()
        self._scale.value.assign(ops.maximum(self._scale.value / 2, LEAST))
        self._since_change.value.assign(ops.zeros_like(self._since_change.value))

    def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> None:
        if not self._uses_fused_kernel:
            raise ValueError(
                "LossScaledAdam needs the TensorFlow backend, without clipping, weight decay, EMA and amsgrad"
            )
        super()._backend_apply_gradients(grads, trainable_variables)
