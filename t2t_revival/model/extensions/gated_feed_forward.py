"""Gated feed-forward networks: hparam `ffn_activation=swiglu` or `geglu`."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from t2t_revival.model.dropout import Dropout
from t2t_revival.model.feed_forward import ACTIVATIONS
from t2t_revival.model.layer import ConfiguredLayer, LayerConfig, SideBySide
from t2t_revival.model.products import matmul

GATES: dict[str, Callable[[Any], Any]] = {"geglu": ACTIVATIONS["gelu"], "swiglu": ACTIVATIONS["swish"]}


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
        self.activation = GATES[config.ffn_activation]
        self.dropout = Dropout(config.relu_dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape: Any = None) -> None:
        hidden, inner = self.config.hidden_size, self.config.filter_size
        both = SideBySide((inner, inner))
        self.kernel_1 = self.add_weight(name="kernel_1", shape=(hidden, 2 * inner), initializer=both)
        shape = inner, hidden
        self.kernel_2 = self.add_weight(name="kernel_2", shape=shape, initializer="glorot_uniform")
        super().build()

    def call(self, x: Any, training: bool = False) -> Any:
        """[..., hidden] -> [..., hidden]."""
        rows = ops.reshape(x, (-1, self.config.hidden_size))  # [positions, hidden]
        gate, linear = ops.split(matmul(rows, self.kernel_1), 2, axis=1)  # [positions, filter] each
        inner = self.dropout(self.activation(gate) * linear, training=training)
        return ops.reshape(matmul(inner, self.kernel_2), ops.shape(x))
