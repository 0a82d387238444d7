"""Section 3.1: layer normalisation, and its later form by the root mean square alone."""

from typing import Any

import keras
from keras import ops

from t2t_revival.model.layer import Layer


@ops.custom_gradient
def normalize(x: Any, gamma: Any, beta: Any, epsilon: Any) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis (Ba et al., 2016).

    The gradient is written out: what a backend derives from the formula takes twice the passes over
    memory, and normalisation is a tenth of a training step on a CPU.

    Args:
        x: float32 [rows, channels].
        gamma: float32 [channels].
        beta: float32 [channels].
        epsilon: float32 scalar.

    Returns:
        float32 [rows, channels].
    """
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    scale = ops.rsqrt(ops.mean(centred * centred, axis=-1, keepdims=True) + epsilon)  # [rows, 1]
    normal = centred * scale

    def gradient(*args: Any, upstream: Any = None) -> tuple[Any, Any, Any, Any]:
        up = args[0] if upstream is None else upstream
        along = up * normal
        channels = x.shape[-1]
        column = gamma[:, None] / channels  # [channels, 1]
        mean, slope = ops.matmul(up, column), ops.matmul(along, column)  # [rows, 1]
        dx = (up * gamma - mean - normal * slope) * scale
        return dx, ops.sum(along, axis=0), ops.sum(up, axis=0), ops.zeros_like(epsilon)

    return normal * gamma + beta, gradient


class Norm(Layer):
    """A normalisation over the channels, with a scale, in float32 under every precision.

    Args:
        hidden_size: d_model, channels.
        epsilon: added to the variance, or to the mean of squares.
    """

    def __init__(self, hidden_size: int, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.epsilon = epsilon

    def build(self, input_shape: Any = None) -> None:
        self.gamma = self._vector("gamma", "ones")

    def _vector(self, name: str, initializer: str) -> Any:
        shape = (self.hidden_size,)
        return self.add_weight(
            name=name, shape=shape, initializer=initializer, dtype="float32", autocast=False
        )


@keras.saving.register_keras_serializable("t2t_revival")
class LayerNorm(Norm):
    """Layer normalisation, with scale and bias; see `Norm`.

    Example:
        output = LayerNorm(hidden_size=512)(x)    # [..., 512] -> the same shape

    Reference: Ba et al., 2016, "Layer Normalization"; T2T's `layer_norm`.
    """

    def build(self, input_shape: Any = None) -> None:
        super().build()
        self.beta = self._vector("beta", "zeros")

    def call(self, x: Any) -> Any:
        """[..., hidden] -> the same shape and type."""
        rows = x if len(x.shape) == 2 else ops.reshape(x, (-1, self.hidden_size))
        epsilon = ops.convert_to_tensor(self.epsilon, "float32")
        normal = normalize(ops.cast(rows, "float32"), ops.copy(self.gamma), ops.copy(self.beta), epsilon)
        normal = ops.cast(normal, x.dtype)
        return normal if len(x.shape) == 2 else ops.reshape(normal, ops.shape(x))


@keras.saving.register_keras_serializable("t2t_revival")
class RMSNorm(Norm):
    """x / sqrt(mean(x^2) + epsilon) * gamma; see `Norm`.

    Example:
        output = RMSNorm(hidden_size=512)(x)    # [..., 512] -> the same shape

    Reference: Zhang and Sennrich, 2019, "Root Mean Square Layer Normalization", equation (4).
    """

    def call(self, x: Any) -> Any:
        """[..., hidden] -> the same shape and type."""
        normal = ops.rms_normalization(ops.cast(x, "float32"), self.gamma, axis=-1, epsilon=self.epsilon)
        return ops.cast(normal, x.dtype)
