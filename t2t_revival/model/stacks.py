"""Section 3.1: the encoder and the decoder, stacks of layers of residual sub-layers."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from t2t_revival.hparams import HParams
from t2t_revival.model.attention import Cache, MultiHeadAttention, causal_bias
from t2t_revival.model.building import build_children
from t2t_revival.model.feed_forward import FeedForward
from t2t_revival.model.normalization import LayerNorm
from t2t_revival.model.regularization import Dropout
from t2t_revival.model.restricted_attention import Neighbourhood, self_attention


class Residual(keras.layers.Layer):
    """A residual connection around a sub-layer.

    Post-norm (the paper): LayerNorm(x + Dropout(Sublayer(x))). Pre-norm (T2T v2, v3):
    x + Dropout(Sublayer(LayerNorm(x))).

    Args:
        hparams: reads `layer_preprocess_sequence` and `layer_prepostprocess_dropout`.
    """

    def __init__(self, hparams: HParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pre_norm = hparams.pre_norm
        self.norm = LayerNorm(hparams, name="norm")
        self.dropout = Dropout(hparams.layer_prepostprocess_dropout, name="dropout")

    def build(self, input_shape: Any = None) -> None:
        build_children(self)
        self.built = True

    def before(self, x: Any) -> Any:
        """What the sub-layer gets: [..., hidden] -> the same shape."""
        return self.norm(x) if self.pre_norm else x

    def after(self, x: Any, output: Any, training: bool = False) -> Any:
        """Joins the input `x` and the sub-layer's `output`, both [..., hidden]."""
        x = x + self.dropout(output, training=training)
        return x if self.pre_norm else self.norm(x)


class EncoderLayer(keras.layers.Layer):
    """Self-attention, then the feed-forward network."""

    def __init__(self, hparams: HParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.self_attention = self_attention(hparams, masked=False, name="self_attention")
        self.self_attention_residual = Residual(hparams, name="self_attention_residual")
        self.feed_forward = FeedForward(hparams, name="feed_forward")
        self.feed_forward_residual = Residual(hparams, name="feed_forward_residual")

    def build(self, input_shape: Any = None) -> None:
        build_children(self)
        self.built = True

    def call(self, x: Any, bias: Any, training: bool = False) -> Any:
        """[batch, length, hidden] -> the same shape; bias: of the self-attention."""
        residual = self.self_attention_residual
        x = residual.after(x, self.self_attention(residual.before(x), bias=bias, training=training), training)
        residual = self.feed_forward_residual
        return residual.after(x, self.feed_forward(residual.before(x), training=training), training)


class DecoderLayer(keras.layers.Layer):
    """Masked self-attention, attention over the encoder's output, then the feed-forward network."""

    def __init__(self, hparams: HParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.self_attention = self_attention(hparams, masked=True, name="self_attention")
        self.self_attention_residual = Residual(hparams, name="self_attention_residual")
        self.encoder_attention = MultiHeadAttention(hparams, over_encoder=True, name="encoder_attention")
        self.encoder_attention_residual = Residual(hparams, name="encoder_attention_residual")
        self.feed_forward = FeedForward(hparams, name="feed_forward")
        self.feed_forward_residual = Residual(hparams, name="feed_forward_residual")

    def build(self, input_shape: Any = None) -> None:
        build_children(self)
        self.built = True

    def call(self, x: Any, encoded: Any, self_bias: Any, encoder_bias: Any, training: bool = False) -> Any:
        """One layer over whole sentences.

        Args:
            x: [batch, target, hidden].
            encoded: [batch, source, hidden].
            self_bias: [batch, 1, target, target]; of restricted attention, see `Neighbourhood.bias`.
            encoder_bias: [batch, 1, 1, source].
            training: whether dropout is active.

        Returns:
            [batch, target, hidden].
        """
        residual = self.self_attention_residual
        output = self.self_attention(residual.before(x), bias=self_bias, training=training)
        x = residual.after(x, output, training)
        residual = self.encoder_attention_residual
        output = self.encoder_attention(residual.before(x), encoded, encoder_bias, training=training)
        x = residual.after(x, output, training)
        residual = self.feed_forward_residual
        return residual.after(x, self.feed_forward(residual.before(x), training=training), training)

    def step(
        self, x: Any, beams: Any, self_cache: Cache, self_bias: Any, encoder_cache: Cache, encoder_bias: Any
    ) -> tuple[Any, Cache]:
        """One layer over the next position of each beam.

        Args:
            x: [batch * beams, hidden].
            beams: how many hypotheses a sentence has, int scalar.
            self_cache: K and V of all beams at the positions before, [batch, heads, memory, key or value].
            self_bias: [batch, 1, beams, memory + beams].
            encoder_cache: K and V of the encoder's output, [batch, heads, source, key or value].
            encoder_bias: [batch, 1, 1, source].

        Returns:
            [batch * beams, hidden], and `self_cache` with the new position.
        """
        residual = self.self_attention_residual
        output, self_cache = self.self_attention.step(residual.before(x), beams, self_cache, self_bias)
        x = residual.after(x, output)
        residual = self.encoder_attention_residual
        output = self.encoder_attention.step_over_encoder(
            residual.before(x), beams, encoder_cache, encoder_bias
        )
        x = residual.after(x, output)
        residual = self.feed_forward_residual
        return residual.after(x, self.feed_forward(residual.before(x))), self_cache


class Encoder(keras.layers.Layer):
    """A stack of `EncoderLayer`; under pre-norm, a last normalisation."""

    def __init__(self, hparams: HParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layers = [EncoderLayer(hparams, name=f"layer_{i}") for i in range(hparams.encoder_layers)]
        self.neighbourhood = Neighbourhood.of(hparams, masked=False)
        self.final_norm = LayerNorm(hparams, name="final_norm") if hparams.pre_norm else None

    def build(self, input_shape: Any = None) -> None:
        build_children(self)
        self.built = True

    def call(self, x: Any, bias: Any, training: bool = False) -> Any:
        """[batch, source, hidden], bias [batch, 1, 1, source] -> [batch, source, hidden]."""
        if self.neighbourhood:
            bias = self.neighbourhood.bias(bias)
        for layer in self.layers:
            x = layer(x, bias, training=training)
        return self.final_norm(x) if self.final_norm else x


class Decoder(keras.layers.Layer):
    """A stack of `DecoderLayer`; under pre-norm, a last normalisation."""

    def __init__(self, hparams: HParams, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layers = [DecoderLayer(hparams, name=f"layer_{i}") for i in range(hparams.decoder_layers)]
        self.neighbourhood = Neighbourhood.of(hparams, masked=True)
        self.final_norm = LayerNorm(hparams, name="final_norm") if hparams.pre_norm else None

    def build(self, input_shape: Any = None) -> None:
        build_children(self)
        self.built = True

    def call(self, x: Any, encoded: Any, encoder_bias: Any, training: bool = False) -> Any:
        """[batch, target, hidden], [batch, source, hidden], [batch, 1, 1, source] -> as the first."""
        self_bias = self._self_bias(*ops.shape(x)[:2])
        for layer in self.layers:
            x = layer(x, encoded, self_bias, encoder_bias, training=training)
        return self.final_norm(x) if self.final_norm else x

    def step(
        self,
        x: Any,
        beams: Any,
        self_caches: list[Cache],
        self_bias: Any,
        encoder_caches: list[Cache],
        encoder_bias: Any,
    ) -> tuple[Any, list[Cache]]:
        """The next position of each beam through all layers.

        Args:
            x: [batch * beams, hidden].
            beams: how many hypotheses a sentence has, int scalar.
            self_caches: of each layer, as in `DecoderLayer.step`.
            self_bias: [batch, 1, beams, memory + beams].
            encoder_caches: of each layer.
            encoder_bias: [batch, 1, 1, source].

        Returns:
            [batch * beams, hidden], and `self_caches` with the new position.
        """
        new_caches = []
        for layer, self_cache, encoder_cache in zip(self.layers, self_caches, encoder_caches, strict=True):
            x, cache = layer.step(x, beams, self_cache, self_bias, encoder_cache, encoder_bias)
            new_caches.append(cache)
        return (self.final_norm(x) if self.final_norm else x), new_caches

    def _self_bias(self, batch: Any, length: Any) -> Any:
        if self.neighbourhood:
            return self.neighbourhood.bias(ops.zeros((batch, 1, 1, length), keras.config.floatx()))
        # One bias for all would do, but oneDNN adds one whose batch is 1 at a 200th of the speed.
        return ops.broadcast_to(causal_bias(length), (batch, 1, length, length))
