"""Variants of the paper's parts: a row for each value of such an hparam, without Keras.

A new variant is a row here, and the class that it names. What a row does not name refuses its models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What holds a model: each value below is refused by all that have not been tried with it.
SAVED_MODEL, LITERT, JAX, ENSEMBLE = "SavedModel", "LiteRT", "JAX", "ensemble"  # run the model itself
CTRANSLATE2, TRANSFORMERS = "CTranslate2", "transformers"  # have models of their own, as
MARIAN, BERGAMOT, M2M100 = "Marian", "bergamot", "M2M100"
PACKED = "packed"  # batches, in which several pairs share a row
KERAS = frozenset({SAVED_MODEL, LITERT, JAX, ENSEMBLE, PACKED})
WITH_CTRANSLATE2 = KERAS | {CTRANSLATE2}
WITH_TRANSFORMERS = WITH_CTRANSLATE2 | {TRANSFORMERS}
ALL = WITH_TRANSFORMERS | {MARIAN, BERGAMOT, M2M100}
ANY = object()  # stands for each value without a row


@dataclass(frozen=True)
class Variant:
    """A value of an hparam by which a model is another one.

    Attributes:
        held_by: what such models have been tried in.
        meaning: for `--registry_help` and the docs.
        made_by: the class in `t2t_revival.model` that takes the place of another, as "module:Class".
        settings: further hparams that such a model is of.
        activation: of a feed-forward network, one of `feed_forward.ACTIVATIONS`.
        is_gated: whether that network has a gate.
    """

    held_by: frozenset[str]
    meaning: str = ""
    made_by: str = ""
    settings: tuple[str, ...] = ()
    activation: str = ""
    is_gated: bool = False


POSITIONS = {  # `embedding.PositionalEncoding` adds those that no attention makes
    "sinusoid": Variant(WITH_TRANSFORMERS, "paper"),
    "timing": Variant(ALL - {M2M100}, "T2T"),
    "fairseq": Variant(WITH_CTRANSLATE2 | {M2M100}, "T2T's, counted from 2"),
    "emb": Variant(WITH_CTRANSLATE2, "learned", settings=("max_length",)),
    "rotary": Variant(WITH_CTRANSLATE2, "Su et al., 2021", "extensions.positions:RotaryAttention"),
    "relative": Variant(
        WITH_CTRANSLATE2,
        "Shaw et al., 2018",
        "extensions.positions:RelativeAttention",
        ("max_relative_position",),
    ),
}
NETWORK, GATED_NETWORK = "feed_forward:FeedForward", "feed_forward:GatedFeedForward"
FEED_FORWARDS = {
    "relu": Variant(ALL, "paper", NETWORK, activation="relu"),
    "gelu": Variant(WITH_TRANSFORMERS, "Hendrycks and Gimpel, 2016", NETWORK, activation="gelu"),
    "swish": Variant(ALL - {M2M100}, "Ramachandran et al., 2017", NETWORK, activation="swish"),
    "geglu": Variant(
        WITH_CTRANSLATE2, "gated, Shazeer, 2020", GATED_NETWORK, activation="gelu", is_gated=True
    ),
    "swiglu": Variant(
        WITH_CTRANSLATE2, "gated, Shazeer, 2020", GATED_NETWORK, activation="swish", is_gated=True
    ),
}
NORMS = {
    "layer": Variant(ALL, "3.1", "norms:LayerNorm"),
    "rms": Variant(WITH_CTRANSLATE2, "without mean and bias, Zhang and Sennrich, 2019", "norms:RMSNorm"),
}
SELF_ATTENTIONS = {  # of the decoder
    "attention": Variant(ALL, "3.2.3"),
    "ssru": Variant(KERAS | {MARIAN, BERGAMOT}, "recurrent, Kim et al., 2019", "extensions.ssru:SSRU"),
}
WINDOWS = {
    0: Variant(ALL),
    ANY: Variant(KERAS - {PACKED}, made_by="extensions.restricted_attention:RestrictedSelfAttention"),
}
ALL_HOLD = {ANY: Variant(ALL)}
VARIANTS: dict[str, Mapping[Any, Variant]] = {  # by hparam
    "pos": POSITIONS,
    "ffn_activation": FEED_FORWARDS,
    "norm_type": NORMS,
    "decoder_self_attention": SELF_ATTENTIONS,
    "attention_window": WINDOWS,
    "layer_preprocess_sequence": {"none": Variant(ALL - {M2M100}), "n": Variant(WITH_CTRANSLATE2 | {M2M100})},
    "start_token": {0: Variant(ALL - {M2M100}), 1: Variant(WITH_CTRANSLATE2 | {M2M100})},
    "norm_epsilon": {1e-6: Variant(ALL), 1e-5: Variant(ALL), ANY: Variant(WITH_CTRANSLATE2)},
    "projection_bias": ALL_HOLD,
    "softmax_bias": {False: Variant(ALL), True: Variant(ALL - {M2M100})},
    "use_target_space_embedding": {False: Variant(ALL), True: Variant(WITH_CTRANSLATE2)},
    "shared_embedding_and_softmax_weights": {True: Variant(ALL), False: Variant(WITH_CTRANSLATE2 | {MARIAN})},
    "deterministic_attention": {False: Variant(ALL), True: Variant(frozenset({SAVED_MODEL, JAX}))},
    "attention_key_channels": {0: Variant(ALL), ANY: Variant(WITH_CTRANSLATE2)},
    "attention_value_channels": {0: Variant(ALL), ANY: Variant(WITH_CTRANSLATE2)},
    "num_encoder_layers": ALL_HOLD,
    "num_decoder_layers": ALL_HOLD,
    "hidden_size": ALL_HOLD,
    "filter_size": ALL_HOLD,
    "decoder_filter_size": {0: Variant(ALL), ANY: Variant(ALL - {BERGAMOT})},
    "num_heads": ALL_HOLD,
}


def variant_of(name: str, value: Any) -> Variant | None:
    """Returns the row of a value of an hparam; `None` if there is none."""
    rows = VARIANTS.get(name, {})
    return rows.get(value, rows.get(ANY))


def described(rows: Mapping[str, Variant]) -> str:
    """Lists the values of an hparam with their meanings."""
    return ", ".join(f'"{value}" ({row.meaning})' for value, row in rows.items())
