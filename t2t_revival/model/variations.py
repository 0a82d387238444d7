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
    if causal and recurrent.made_by:
        unit: type[ConfiguredLayer] = _class_of(recurrent)
        return unit(config, dtype=dtype, name="self_attention")
    rows = (variant_of(name, getattr(config, name)) for name in ("attention_window", "pos"))
    made_by = (_class_of(row) for row in rows if row and row.made_by)
    attention: type[MultiHeadAttention] = next(made_by, MultiHeadAttention)
    return attention(config, causal=causal, dtype=dtype, name="self_attention")


def make_feed_forward(config: LayerConfig, dtype: Any) -> ConfiguredLayer:
    """Returns the feed-forward network of a layer."""
    network: type[ConfiguredLayer] = _class_of(FEED_FORWARDS[config.ffn_activation])
    return network(config, dtype=dtype, name="feed_forward")


def make_norm(config: LayerConfig, dtype: Any, name: str) -> Norm:
    """Returns a normalisation."""
    norm: type[Norm] = _class_of(NORMS[config.norm_type])
    return norm(config.hidden_size, config.norm_epsilon, dtype=dtype, name=name)


def _class_of(row: Variant) -> Any:
    return resolve_name(f"t2t_revival.model.{row.made_by}")
