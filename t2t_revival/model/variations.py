"""Makes the parts that hparams put in the place of the paper's; see `hparams.variants` for the table."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

from t2t_revival.hparams.variants import FEED_FORWARDS, NORMS, SELF_ATTENTIONS, Variant, variant_of
from t2t_revival.model.attention import MultiHeadAttention
from t2t_revival.model.layer import ConfiguredLayer, LayerConfig
from t2t_revival.model.norms import Norm


def make_self_attention(config: LayerConfig, causal: bool, dtype: Any) -> ConfiguredLayer:
    """Returns the self-attention of a layer, or what stands in its place."""
    recurrent = SELF_ATTENTIONS[config.decoder_self_attention]
    unit: ConfiguredLayer
    if causal and recurrent.made_by:
        unit = _class_of(recurrent)(config, dtype=dtype, name="self_attention")
        return unit
    rows = (variant_of(name, getattr(config, name)) for name in ("attention_window", "pos"))
    kind = next((_class_of(row) for row in rows if row and row.made_by), MultiHeadAttention)
    unit = kind(config, causal=causal, dtype=dtype, name="self_attention")
    return unit


def make_feed_forward(config: LayerConfig, dtype: Any) -> ConfiguredLayer:
    """Returns the feed-forward network of a layer."""
    kind = _class_of(FEED_FORWARDS[config.ffn_activation])
    network: ConfiguredLayer = kind(config, dtype=dtype, name="feed_forward")
    return network


def make_norm(config: LayerConfig, dtype: Any, name: str) -> Norm:
    """Returns a normalisation."""
    kind = _class_of(NORMS[config.norm_type])
    norm: Norm = kind(config.hidden_size, config.norm_epsilon, dtype=dtype, name=name)
    return norm


def _class_of(row: Variant) -> Any:
    return resolve_name(f"t2t_revival.model.{row.made_by}")
