"""Section 3.1: residual connections and layer normalisation."""

from typing import Any

import keras
from keras import ops

from t2t_revival.model.dropout import Dropout
from t2t_revival.model.layer import Layer
from t2t_revival.model.normalize import normalize


@keras.saving.register_keras_serializable("t2t_revival")
class LayerNorm(Layer):
    """Layer normalisation over the channels, with scale and bias, in float32 under every precision.

    Args:
        hidden_size: d_model, channels.
        epsilon: added to the variance.

    Example:
        output = LayerNorm(hidden_size=512)(x)    # [..., 512] -> the same shape

    Reference: Ba et al., 2016, "Layer Normalization"; T2T's `layer_norm`.
    """

    def __init__(self, hidden_size: int, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.epsilon = epsilon

    def build(self, input_shape: Any = None) -> None:
        exact = {"shape": (self.hidden_size,), "dtype": "float32", "autocast": False}
        self.gamma = self.add_weight(name="gamma", initializer="ones", **exact)
        self.beta = self.add_weight(name="beta", initializer="zeros", **exact)

    def call(self, x: Any) -> Any:
        """[..., hidden] -> the same shape and type."""
        rows = x if len(x.shape) == 2 else ops.reshape(x, (-1, self.hidden_size))
        epsilon = ops.convert_to_tensor(self.epsilon, "float32")
        normal = normalize(ops.cast(rows, "float32"), ops.copy(self.gamma), ops.copy(self.beta), epsilon)
        normal = ops.cast(normal, x.dtype)
        return normal if len(x.shape) == 2 else ops.reshape(normal, ops.shape(x))


@keras.saving.register_keras_serializable("t2t_revival")
class Residual(Layer):
    """A residual connection around a sub-layer.

    Post-norm (the paper): LayerNorm(x + Dropout(Sublayer(x))). Pre-norm (T2T v2, v3):
    x + Dropout(Sublayer(LayerNorm(x))).

    Args:
        hidden_size: d_model, channels.
        dropout: probability, on the sub-layer's output (section 5.4).
        pre_norm: whether the norm comes before the sub-layer.
        epsilon: of the layer normalisation.

    Example:
        residual = Residual(hidden_size=512, dropout=0.1)
        x = residual(x, feed_forward(residual.preprocess(x)))

    Reference: Vaswani et al., 2017, section 3.1; T2T's `layer_preprocess` and `layer_postprocess`.
    """

    def __init__(
        self,
        hidden_size: int,
        dropout: float = 0.0,
        pre_norm: bool = False,
        epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pre_norm = pre_norm
        self.norm = LayerNorm(hidden_size, epsilon, dtype=self.dtype_policy, name="norm")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def preprocess(self, x: Any) -> Any:
        """Returns the sub-layer's input for `x`, [..., hidden]."""
        return self.norm(x) if self.pre_norm else x

    def call(self, x: Any, output: Any, training: bool = False) -> Any:
        """Adds the sub-layer's `output` to `x`, both [..., hidden]."""
        x = x + self.dropout(output, training=training)
        return x if self.pre_norm else self.norm(x)
