"""Section 3.3: position-wise feed-forward networks, and later gated ones."""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
from keras import ops

from t2t_revival.hparams.variants import FEED_FORWARDS
from t2t_revival.model.dropout import Dropout
from t2t_revival.model.layer import ConfiguredLayer, LayerConfig, SideBySide
from t2t_revival.model.products import matmul

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {  # of the inner layer
    "relu": ops.relu,  # the paper
    "gelu": partial(ops.gelu, approximate=False),  # Hendrycks and Gimpel, 2016
    "swish": ops.silu,  # Ramachandran et al., 2017
}


@keras.saving.register_keras_serializable("t2t_revival")
class FeedForward(ConfiguredLayer):
    """Equation (2): FFN(x) = max(0, x W1 + b1) W2 + b2, the same at each position.

    The config's `ffn_activation` may put another function in the place of max(0, x).

    Example:
        output = FeedForward(LayerConfig(hidden_size=512, filter_size=2048))(x)    # [..., 512] -> the same

    Reference: Vaswani et al., 2017, section 3.3; T2T's `dense_relu_dense`.
    """

    def __init__(self, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.activation = ACTIVATIONS[FEED_FORWARDS[config.ffn_activation].activation]
        self.dropout = Dropout(config.relu_dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape: Any = None) -> None:
        sizes = self.config.hidden_size, self.config.filter_size
        self.kernel_1 = self.add_weight(name="kernel_1", shape=sizes, initializer="glorot_uniform")
        self.bias_1 = self.add_weight(name="bias_1", shape=sizes[1:], initializer="zeros")
        self.kernel_2 = self.add_weight(name="kernel_2", shape=sizes[::-1], initializer="glorot_uniform")
        self.bias_2 = self.add_weight(name="bias_2", shape=sizes[:1], initializer="zeros")
        super().build()

    def call(self, x: Any, training: bool = False) -> Any:
        """[..., hidden] -> [..., hidden]."""
        # [positions, hidden]
        rows = x if len(x.shape) == 2 else ops.reshape(x, (-1, self.config.hidden_size))
        # `ops.add` and not `+`: it lets TensorFlow fuse product and bias, and sum the gradient faster.
        inner = self.activation(ops.add(matmul(rows, self.kernel_1), self.bias_1))  # [positions, filter]
        inner = self.dropout(inner, training=training)
        rows = ops.add(matmul(inner, self.kernel_2), self.bias_2)  # [positions, hidden]
        return rows if len(x.shape) == 2 else ops.reshape(rows, ops.shape(x))


@keras.saving.register_keras_serializable("t2t_revival")
class GatedFeedForward(ConfiguredLayer):
    """FFN(x) = (f(x W) * x V) W2, without biases; f is the activation that the config names.

    W and V stand side by side in one matrix. With 2/3 of the paper's `filter_size` it has the parameters of
    `FeedForward`.

    Example:
        config = LayerConfig(hidden_size=512, filter_size=1368, ffn_activation="swiglu")
        output = GatedFeedForward(config)(x)    # [..., 512] -> the same shape

    Reference: Shazeer, 2020, "GLU Variants Improve Transformer", equation (6).
    """

    def __init__(self, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.activation = ACTIVATIONS[FEED_FORWARDS[config.ffn_activation].activation]
        self.dropout = Dropout(config.relu_dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape: Any = None) -> None:
        hidden, inner = self.config.hidden_size, self.config.filter_size
        both = SideBySide((inner, inner))
        self.kernel_1 = self.add_weight(name="kernel_1", shape=(hidden, 2 * inner), initializer=both)
        self.kernel_2 = self.add_weight(name="kernel_2", shape=(inner, hidden), initializer="glorot_uniform")
        super().build()

    def call(self, x: Any, training: bool = False) -> Any:
        """[..., hidden] -> [..., hidden]."""
        rows = ops.reshape(x, (-1, self.config.hidden_size))  # [positions, hidden]
        gate, linear = ops.split(matmul(rows, self.kernel_1), 2, axis=1)  # [positions, filter] each
        inner = self.dropout(self.activation(gate) * linear, training=training)
        return ops.reshape(matmul(inner, self.kernel_2), ops.shape(x))
