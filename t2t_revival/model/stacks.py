"""Section 3.1: the encoder and the decoder, stacks of layers of residual sub-layers."""

from functools import partial
from typing import Any

import keras
from keras import ops

from t2t_revival.model.attention import Cache, MultiHeadAttention, padding_bias
from t2t_revival.model.extensions.restricted_attention import self_attention
from t2t_revival.model.extensions.ssru import SSRU
from t2t_revival.model.feed_forward import FeedForward
from t2t_revival.model.layer import SequenceLayer
from t2t_revival.model.outputs import DecoderState
from t2t_revival.model.residual import LayerNorm, Residual

OF_KERAS = ("name", "dtype", "trainable")


@keras.saving.register_keras_serializable("t2t_revival")
class EncoderLayer(SequenceLayer):
    """Self-attention, then the feed-forward network.

    Args:
        num_heads: h, heads of each attention.
        hidden_size: d_model, channels of inputs and outputs.
        filter_size: d_ff, channels of the feed-forward network's inner layer.
        dropout: probability, on the output of each sub-layer.
        key_channels: h * d_k, channels of the keys of all heads together; `None` uses `hidden_size`.
        value_channels: h * d_v, likewise.
        attention_dropout: probability, on attention weights.
        relu_dropout: probability, inside the feed-forward network.
        pre_norm: whether norms come before sub-layers (T2T v2, v3), not after them (the paper).
        norm_epsilon: added to the variance in layer normalisation.
        attention_window: r of restricted self-attention (section 4), positions; 0 shows all.
        decoder_self_attention: of a `DecoderLayer`, "attention", or "ssru" for a recurrent unit instead.

    Example:
        layer = EncoderLayer(num_heads=8, hidden_size=512, filter_size=2048, dropout=0.1)
        output = layer(x, mask=ids != 0)    # [batch, length, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.1, "Encoder"; T2T's `transformer_encoder`.
    """

    is_decoder = False

    def __init__(
        self,
        num_heads: int,
        hidden_size: int,
        filter_size: int,
        dropout: float = 0.0,
        key_channels: int | None = None,
        value_channels: int | None = None,
        attention_dropout: float = 0.0,
        relu_dropout: float = 0.0,
        pre_norm: bool = False,
        norm_epsilon: float = 1e-6,
        attention_window: int = 0,
        decoder_self_attention: str = "attention",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        dtype = self.dtype_policy
        heads = (num_heads, hidden_size, key_channels, value_channels, attention_dropout)
        residual = partial(Residual, hidden_size, dropout, pre_norm, norm_epsilon, dtype=dtype)
        if self.is_decoder and decoder_self_attention == "ssru":
            self.self_attention = SSRU(hidden_size, dtype=dtype, name="self_attention")
        else:
            self.self_attention = self_attention(
                attention_window, *heads, causal=self.is_decoder, dtype=dtype, name="self_attention"
            )
        self.self_attention_residual = residual(name="self_attention_residual")
        if self.is_decoder:
            over_encoder = {"cross_attention": True, "dtype": dtype, "name": "encoder_attention"}
            self.encoder_attention = MultiHeadAttention(*heads, **over_encoder)
            self.encoder_attention_residual = residual(name="encoder_attention_residual")
        self.feed_forward = FeedForward(
            hidden_size, filter_size, relu_dropout, dtype=dtype, name="feed_forward"
        )
        self.feed_forward_residual = residual(name="feed_forward_residual")

    def call(
        self,
        x: Any,
        mask: Any = None,
        bias: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> Any:
        """[batch, length, hidden] -> the same shape; arguments as those of `MultiHeadAttention.call`.

        With `return_attention_scores`, also the attention weights, [batch, heads, length, length].
        """
        how = {"training": training, "return_attention_scores": return_attention_scores}
        x, weights = self._connect("self_attention", x, mask=mask, bias=bias, **how)
        x, _ = self._connect("feed_forward", x, training=training)
        return (x, weights) if return_attention_scores else x

    def _connect(self, name: str, x: Any, *inputs: Any, training: bool, **how: Any) -> tuple[Any, Any]:
        """Runs a sub-layer in its residual connection; returns `x` and what the sub-layer returns beside."""
        residual = getattr(self, f"{name}_residual")
        output, extra = _pair(getattr(self, name)(residual.preprocess(x), *inputs, training=training, **how))
        return residual(x, output, training=training), extra


@keras.saving.register_keras_serializable("t2t_revival")
class DecoderLayer(EncoderLayer):
    """Masked self-attention, attention over the encoder's output, then the feed-forward network.

    Arguments are those of `EncoderLayer`.

    Example:
        layer = DecoderLayer(num_heads=8, hidden_size=512, filter_size=2048, dropout=0.1)
        output = layer(x, encoded, encoded_mask=source != 0)    # [batch, target, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.1, "Decoder"; T2T's `transformer_decoder`.
    """

    is_decoder = True

    def call(  # type: ignore[override]
        self,
        x: Any,
        encoded: Any = None,
        encoded_mask: Any = None,
        bias: Any = None,
        encoder_bias: Any = None,
        cache: tuple[Cache, Cache] | None = None,
        beams: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> Any:
        """[batch, target, hidden] -> the same shape; with a `cache`, a new position, [batch * beams, hidden].

        Arguments are those of `MultiHeadAttention.call`, with `encoded_mask` and `encoder_bias` for attention
        over the encoder's output; `cache` is that of the self-attention and that of the other.

        Returns:
            With `return_attention_scores`, also a pair: the weights of both attentions, [batch, heads,
            target, target or source]. With a cache, also the self-attention's next one.
        """
        self_cache, encoder_cache = cache or (None, None)
        how = {"beams": beams, "training": training, "return_attention_scores": return_attention_scores}
        x, extra = self._connect("self_attention", x, bias=bias, cache=self_cache, **how)
        over_encoder = (encoded, encoded_mask, encoder_bias, encoder_cache)
        x, encoder_extra = self._connect("encoder_attention", x, *over_encoder, **how)
        x, _ = self._connect("feed_forward", x, training=training)
        if cache is not None:
            return x, extra
        return (x, (extra, encoder_extra)) if return_attention_scores else x


@keras.saving.register_keras_serializable("t2t_revival")
class Encoder(SequenceLayer):
    """A stack of `EncoderLayer`; under pre-norm, a last normalisation.

    Args:
        num_layers: N.
        **kwargs: see `EncoderLayer`; `name`, `dtype` and `trainable` are those of the stack.

    Example:
        encoder = Encoder(num_layers=6, num_heads=8, hidden_size=512, filter_size=2048, dropout=0.1)
        encoded = encoder(x, mask=ids != 0)    # [batch, source, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.1; T2T's `transformer_encoder`.
    """

    layer_type = EncoderLayer

    def __init__(self, num_layers: int, **kwargs: Any) -> None:
        super().__init__(**{name: kwargs.pop(name) for name in OF_KERAS if name in kwargs})
        dtype = self.dtype_policy
        self.layers = [self.layer_type(**kwargs, dtype=dtype, name=f"layer_{i}") for i in range(num_layers)]
        self.final_norm = None
        if kwargs.get("pre_norm"):
            norm = kwargs["hidden_size"], kwargs.get("norm_epsilon", 1e-6)
            self.final_norm = LayerNorm(*norm, dtype=dtype, name="final_norm")

    def call(
        self, x: Any, mask: Any = None, training: bool = False, return_attention_scores: bool = False
    ) -> Any:
        """[batch, source, hidden] -> the same shape; arguments as those of `EncoderLayer.call`.

        With `return_attention_scores`, also the weights, [batch, layers, heads, source, source].
        """
        bias = self.layers[0].self_attention.attention_bias(x, mask)
        x, weights = self._run(x, bias=bias, training=training, scores=return_attention_scores)
        return (x, ops.stack(weights, axis=1)) if return_attention_scores else x

    def _run(self, x: Any, *inputs: Any, caches: Any = None, scores: bool = False, **how: Any) -> Any:
        """Returns the output of all layers, and of each what it returns beside."""
        extras = []
        for i, layer in enumerate(self.layers):
            if caches is not None:
                how["cache"] = caches[i]
            x, extra = _pair(layer(x, *inputs, return_attention_scores=scores, **how))
            extras.append(extra)
        return (self.final_norm(x) if self.final_norm else x), extras


@keras.saving.register_keras_serializable("t2t_revival")
class Decoder(Encoder):
    """A stack of `DecoderLayer`, with the arguments of `Encoder`; under pre-norm, a last normalisation.

    Example:
        decoder = Decoder(num_layers=6, num_heads=8, hidden_size=512, filter_size=2048, dropout=0.1)
        output = decoder(x, encoded, encoded_mask=source != 0)    # [batch, target, 512] -> the same shape

    Reference: Vaswani et al., 2017, section 3.1; T2T's `transformer_decoder`.
    """

    layer_type = DecoderLayer

    def call(  # type: ignore[override]
        self,
        x: Any,
        encoded: Any = None,
        encoded_mask: Any = None,
        state: DecoderState | None = None,
        beams: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> Any:
        """[batch, target, hidden] -> the same shape; with a `state`, a new position, [batch * beams, hidden].

        Arguments are those of `DecoderLayer.call`. The `self_bias` of `state` has the new position, its
        caches do not.

        Returns:
            As `DecoderLayer.call`, of all layers: weights are [batch, layers, heads, target, target or
            source], caches a list.
        """
        if state is not None:
            caches = list(zip(state.self_caches, state.encoder_caches, strict=True))
            biases = {"bias": ops.expand_dims(state.self_bias, 1), "encoder_bias": state.encoder_bias}
            return self._run(x, caches=caches, beams=beams, **biases)
        encoder_bias = None if encoded_mask is None else padding_bias(encoded_mask)
        biases = {"bias": self.layers[0].self_attention.attention_bias(x), "encoder_bias": encoder_bias}
        x, weights = self._run(x, encoded, training=training, scores=return_attention_scores, **biases)
        if not return_attention_scores:
            return x
        return x, tuple(ops.stack(kind, axis=1) for kind in zip(*weights, strict=True))


def _pair(output: Any) -> tuple[Any, Any]:
    """Returns an output and what comes beside it: attention weights, a cache or nothing."""
    return output if isinstance(output, tuple) else (output, None)
