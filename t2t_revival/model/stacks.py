"""Section 3.1: the encoder and the decoder, stacks of layers of residual sub-layers."""

from typing import Any

import keras
from keras import ops

from t2t_revival.model.attention import MultiHeadAttention
from t2t_revival.model.layer import ConfiguredLayer, LayerConfig
from t2t_revival.model.residual import Residual
from t2t_revival.model.variations import make_feed_forward, make_norm, make_self_attention


@keras.saving.register_keras_serializable("t2t_revival")
class EncoderLayer(ConfiguredLayer):
    """Self-attention, then the feed-forward network.

    Example:
        layer = EncoderLayer(LayerConfig(num_heads=8, hidden_size=512, filter_size=2048, dropout=0.1))
        output = layer(x, mask=ids != 0)    # [batch, length, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.1, "Encoder"; T2T's `transformer_encoder`.
    """

    def __init__(self, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        dtype = self.dtype_policy
        self.self_attention = make_self_attention(config, causal=False, dtype=dtype)
        self.self_attention_residual = Residual(config, dtype=dtype, name="self_attention_residual")
        self.feed_forward = make_feed_forward(config, dtype)
        self.feed_forward_residual = Residual(config, dtype=dtype, name="feed_forward_residual")

    def call(
        self, x: Any, mask: Any = None, training: bool = False, return_attention_scores: bool = False
    ) -> Any:
        """[batch, length, hidden] -> the same shape; arguments as those of `MultiHeadAttention.call`.

        With `return_attention_scores`, also the attention weights, [batch, heads, length, length].
        """
        y = self.self_attention_residual.preprocess(x)
        y, weights = self.self_attention(y, mask=mask, training=training, return_attention_scores=True)
        x = self.self_attention_residual(x, y, training=training)

        y = self.feed_forward(self.feed_forward_residual.preprocess(x), training=training)
        x = self.feed_forward_residual(x, y, training=training)
        return (x, weights) if return_attention_scores else x


@keras.saving.register_keras_serializable("t2t_revival")
class DecoderLayer(ConfiguredLayer):
    """Masked self-attention, attention over the encoder's output, then the feed-forward network.

    Example:
        layer = DecoderLayer(LayerConfig(num_heads=8, hidden_size=512, filter_size=2048, dropout=0.1))
        output = layer(x, encoded, encoded_mask=source != 0)    # [batch, target, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.1, "Decoder"; T2T's `transformer_decoder`.
    """

    def __init__(self, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        dtype = self.dtype_policy
        self.self_attention = make_self_attention(config, causal=True, dtype=dtype)
        self.self_attention_residual = Residual(config, dtype=dtype, name="self_attention_residual")
        self.encoder_attention = MultiHeadAttention(
            config, cross_attention=True, dtype=dtype, name="encoder_attention"
        )
        self.encoder_attention_residual = Residual(config, dtype=dtype, name="encoder_attention_residual")
        self.feed_forward = make_feed_forward(config, dtype)
        self.feed_forward_residual = Residual(config, dtype=dtype, name="feed_forward_residual")

    def call(
        self,
        x: Any,
        encoded: Any,
        encoded_mask: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
        mask: Any = None,
    ) -> Any:
        """[batch, target, hidden] -> the same shape.

        Arguments are those of `MultiHeadAttention.call`; `encoded_mask` is that of `encoded`, `mask` that of
        `x`, which is seen up to each position anyway. With
        `return_attention_scores`, also the weights of both attentions, [batch, heads, target, target or
        source].
        """
        scores = {"return_attention_scores": True}
        y = self.self_attention_residual.preprocess(x)
        y, weights = self.self_attention(y, mask=mask, training=training, **scores)
        x = self.self_attention_residual(x, y, training=training)

        y = self.encoder_attention_residual.preprocess(x)
        y, encoder_weights = self.encoder_attention(y, encoded, encoded_mask, training=training, **scores)
        x = self.encoder_attention_residual(x, y, training=training)

        y = self.feed_forward(self.feed_forward_residual.preprocess(x), training=training)
        x = self.feed_forward_residual(x, y, training=training)
        return (x, weights, encoder_weights) if return_attention_scores else x


class Stack(ConfiguredLayer):
    """N layers, and under pre-norm a last normalisation; see `Encoder` and `Decoder`."""

    layer_type: type[ConfiguredLayer]

    def __init__(self, num_layers: int, config: LayerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        self.num_layers = num_layers
        dtype = self.dtype_policy
        self.layers: list[Any] = [
            self.layer_type(config=config, dtype=dtype, name=f"layer_{i}") for i in range(num_layers)
        ]
        self.final_norm = make_norm(config, dtype, "final_norm") if config.pre_norm else None

    def finish(self, x: Any) -> Any:
        """Returns the stack's output for that of the last layer, [..., hidden]."""
        return x if self.final_norm is None else self.final_norm(x)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_layers": self.num_layers}


@keras.saving.register_keras_serializable("t2t_revival")
class Encoder(Stack):
    """A stack of `EncoderLayer`; under pre-norm, a last normalisation.

    Args:
        num_layers: N.
        config: of each layer.

    Example:
        config = LayerConfig(num_heads=8, hidden_size=512, filter_size=2048, dropout=0.1)
        encoded = Encoder(6, config)(x, mask=ids != 0)    # [batch, source, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.1; T2T's `transformer_encoder`.
    """

    layer_type = EncoderLayer

    def call(
        self, x: Any, mask: Any = None, training: bool = False, return_attention_scores: bool = False
    ) -> Any:
        """[batch, source, hidden] -> the same shape; arguments as those of `EncoderLayer.call`.

        With `return_attention_scores`, also the weights, [batch, layers, heads, source, source].
        """
        weights = []
        for layer in self.layers:
            x, of_layer = layer(x, mask=mask, training=training, return_attention_scores=True)
            weights.append(of_layer)
        x = self.finish(x)
        return (x, ops.stack(weights, axis=1)) if return_attention_scores else x


@keras.saving.register_keras_serializable("t2t_revival")
class Decoder(Stack):
    """A stack of `DecoderLayer`; under pre-norm, a last normalisation.

    Args:
        num_layers: N.
        config: of each layer.

    Example:
        config = LayerConfig(num_heads=8, hidden_size=512, filter_size=2048, dropout=0.1)
        output = Decoder(6, config)(x, encoded, encoded_mask=source != 0)    # [batch, target, 512]

    Reference: Vaswani et al., 2017, section 3.1; T2T's `transformer_decoder`.
    """

    layer_type = DecoderLayer

    def call(
        self,
        x: Any,
        encoded: Any,
        encoded_mask: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
        mask: Any = None,
    ) -> Any:
        """[batch, target, hidden] -> the same shape; arguments as those of `DecoderLayer.call`.

        With `return_attention_scores`, also the weights of both attentions, [batch, layers, heads, target,
        target or source].
        """
        weights = []
        options = {"encoded_mask": encoded_mask, "mask": mask, "training": training}
        for layer in self.layers:
            x, *of_layer = layer(x, encoded, return_attention_scores=True, **options)
            weights.append(of_layer)
        x = self.finish(x)
        if not return_attention_scores:
            return x
        return x, *(ops.stack(kind, axis=1) for kind in zip(*weights, strict=True))
