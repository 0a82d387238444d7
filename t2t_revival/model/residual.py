"""Section 3.1: residual connections, with a normalisation."""

from typing import Any

import keras

from t2t_revival.model.dropout import Dropout
from t2t_revival.model.layer import ConfiguredLayer, LayerConfig
from t2t_revival.model.variations import make_norm


@keras.saving.register_keras_serializable("t2t_revival")
class Residual(ConfiguredLayer):
    """A residual connection around a sub-layer.

    Post-norm (the paper): LayerNorm(x + Dropout(Sublayer(x))). Pre-norm (T2T v2, v3):
    x + Dropout(Sublayer(LayerNorm(x))).

    Example:
        residual = Residual(LayerConfig(hidden_size=512, dropout=0.1))
        x = residual(x, feed_forward(residual.preprocess(x)))

    Reference: Vaswani et al., 2017, section 3.1; T2T's `layer_preprocess` and `layer_postprocess`.
    """

    def __init__(self, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.norm = make_norm(config, dtype=self.dtype_policy, name="norm")
        self.dropout = Dropout(config.dropout, dtype=self.dtype_policy, name="dropout")

    def preprocess(self, x: Any) -> Any:
        """Returns the sub-layer's input for `x`, [..., hidden]."""
        return self.norm(x) if self.config.pre_norm else x

    def call(self, x: Any, output: Any, training: bool = False) -> Any:
        """Adds the sub-layer's `output` to `x`, both [..., hidden]."""
        x = x + self.dropout(output, training=training)
        return x if self.config.pre_norm else self.norm(x)
