"""Section 3.3: position-wise feed-forward networks."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.model.building import build_children
from t2t_revival.model.regularization import Dropout


class FeedForward(keras.layers.Layer):
    """Equation (2): FFN(x) = max(0, x W1 + b1) W2 + b2, the same at each position.

    Args:
        hparams: reads `hidden_size`, `filter_size` (d_ff) and `relu_dropout`.
    """

    def __init__(self, hparams: HParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden_size = hparams.hidden_size
        self.filter_size = hparams.filter_size
        self.dropout = Dropout(hparams.relu_dropout, name="dropout")

    def build(self, input_shape: Any = None) -> None:
        self.kernel_1 = self.add_weight(
            name="kernel_1", shape=(self.hidden_size, self.filter_size), initializer="glorot_uniform"
        )
        self.bias_1 = self.add_weight(name="bias_1", shape=(self.filter_size,), initializer="zeros")
        self.kernel_2 = self.add_weight(
            name="kernel_2", shape=(self.filter_size, self.hidden_size), initializer="glorot_uniform"
        )
        self.bias_2 = self.add_weight(name="bias_2", shape=(self.hidden_size,), initializer="zeros")
        build_children(self)
        self.built = True

    def call(self, x: Any, training: bool = False) -> Any:
        """[..., hidden] -> [..., hidden]."""
        if len(x.shape) == 2:
            return self._network(x, training)
        rows = ops.reshape(x, (-1, self.hidden_size))  # [positions, hidden]
        return ops.reshape(self._network(rows, training), ops.shape(x))

    def _network(self, x: Any, training: bool) -> Any:
        """[positions, hidden] -> [positions, hidden]."""
        # `ops.add` and not `+`: it lets TensorFlow fuse product and bias, and sum the gradient faster.
        inner = ops.relu(ops.add(ops.matmul(x, self.kernel_1), self.bias_1))  # [positions, filter]
        inner = self.dropout(inner, training=training)
        return ops.add(ops.matmul(inner, self.kernel_2), self.bias_2)
