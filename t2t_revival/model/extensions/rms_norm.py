"""Normalisation by the root mean square alone: hparam `norm_type=rms`."""

from typing import Any

import keras
from keras import ops

from t2t_revival.model.layer import Layer


@keras.saving.register_keras_serializable("t2t_revival")
class RMSNorm(Layer):
    """x / sqrt(mean(x^2) + epsilon) * gamma over the channels, in float32 under every precision.

    Args:
        hidden_size: d_model, channels.
        epsilon: added to the mean of squares.

    Example:
        output = RMSNorm(hidden_size=512)(x)    # [..., 512] -> the same shape

    Reference: Zhang and Sennrich, 2019, "Root Mean Square Layer Normalization", equation (4).
    """

    def __init__(self, hidden_size: int, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.epsilon = epsilon

    def build(self, input_shape: Any = None) -> None:
        exact = {"shape": (self.hidden_size,), "dtype": "float32", "autocast": False}
        self.gamma = self.add_weight(name="gamma", initializer="ones", **exact)

    def call(self, x: Any) -> Any:
        """[..., hidden] -> the same shape and type."""
        normal = ops.rms_normalization(ops.cast(x, "float32"), self.gamma, axis=-1, epsilon=self.epsilon)
        return ops.cast(normal, x.dtype)
