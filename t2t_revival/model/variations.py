"""Parts that hparams put in the place of the paper's: one row each, named by its hparam's value."""

from __future__ import annotations

from typing import Any

from t2t_revival.model.attention import MultiHeadAttention
from t2t_revival.model.extensions.positions import RelativeAttention, RotaryAttention
from t2t_revival.model.extensions.restricted_attention import RestrictedSelfAttention
from t2t_revival.model.extensions.ssru import SSRU
from t2t_revival.model.feed_forward import ACTIVATIONS, GATES, FeedForward, GatedFeedForward
from t2t_revival.model.layer import ConfiguredLayer, LayerConfig
from t2t_revival.model.norms import LayerNorm, Norm, RMSNorm

POSITIONS_IN_ATTENTION: dict[str, type[MultiHeadAttention]] = {  # `pos`; see `embedding` for the others
    "relative": RelativeAttention,
    "rotary": RotaryAttention,
}
FEED_FORWARDS: dict[str, type[ConfiguredLayer]] = {  # `ffn_activation`
    **dict.fromkeys(ACTIVATIONS, FeedForward),
    **dict.fromkeys(GATES, GatedFeedForward),
}
NORMS: dict[str, type[Norm]] = {"layer": LayerNorm, "rms": RMSNorm}  # `norm_type`


def make_self_attention(config: LayerConfig, causal: bool, dtype: Any) -> ConfiguredLayer:
    """Returns the self-attention of a layer, or what stands in its place."""
    if causal and config.decoder_self_attention == "ssru":
        return SSRU(config, dtype=dtype, name="self_attention")
    of_positions = POSITIONS_IN_ATTENTION.get(config.pos, MultiHeadAttention)
    kind = RestrictedSelfAttention if config.attention_window else of_positions
    return kind(config, causal=causal, dtype=dtype, name="self_attention")


def make_feed_forward(config: LayerConfig, dtype: Any) -> ConfiguredLayer:
    """Returns the feed-forward network of a layer."""
    return FEED_FORWARDS[config.ffn_activation](config, dtype=dtype, name="feed_forward")


def make_norm(config: LayerConfig, dtype: Any, name: str) -> Norm:
    """Returns a normalisation."""
    return NORMS[config.norm_type](config.hidden_size, config.norm_epsilon, dtype=dtype, name=name)
