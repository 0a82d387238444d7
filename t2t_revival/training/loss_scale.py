"""Loss scaling, which float16 needs, whose small numbers are not small enough for gradients.

The loss is multiplied by a scale, and the gradients divided by it before the update. An update whose
gradients overflow is left out and the scale halved; after many without one it is doubled (Micikevicius et
al., 2018, "Mixed Precision Training").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import keras

from t2t_revival.training.optimizer import FusedAdam

FIRST = 2.0**15
LEAST = 1.0  # a gradient that overflows at this scale is no fault of the scale
UPDATES_TO_GROW = 2000


class LossScale(NamedTuple):
    """What the loss is multiplied by, and how many updates were done since that changed."""

    scale: float
    updates: int


@keras.saving.register_keras_serializable("t2t_revival")
class LossScaledAdam(FusedAdam):
    """`FusedAdam` for a model that computes in float16; under TensorFlow, without Keras's extras.

    Keras's `LossScaleOptimizer` decides for each micro-batch, and from what one replica sees. Here one
    decision is made for each update, of all its replicas and micro-batches, as `FusedAdam` makes it anyway.
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

    def continue_with_scale(self, scale: float, updates: int) -> None:
        self._scale.assign(scale)
        self._since_change.assign(updates)

    def scale_loss(self, loss: Any) -> Any:
        """What Keras asks for before it takes gradients."""
        return loss * self._scale

    def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> None:
        if not self._is_plain:
            raise ValueError(
                "LossScaledAdam works under TensorFlow, without clipping, decay, EMA and amsgrad"
            )
        super()._backend_apply_gradients(grads, trainable_variables)

    def _divisor(self) -> Any:
        return self._scale.value * self._micro_batches

    def _note_update(self) -> None:
        import tensorflow as tf

        done = self._since_change.value + 1
        grows = done >= UPDATES_TO_GROW
        self._scale.value.assign(tf.where(grows, 2.0, 1.0) * self._scale.value)
        self._since_change.value.assign(tf.where(grows, tf.zeros_like(done), done))

    def _note_left_out(self) -> None:
        import tensorflow as tf

        super()._note_left_out()
        self._scale.value.assign(tf.maximum(self._scale.value / 2, LEAST))
        self._since_change.value.assign(tf.zeros_like(self._since_change.value))
