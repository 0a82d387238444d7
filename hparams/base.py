"""The sets of the paper, smaller ones, and students for `t2t-distill`, each as changes of the base model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from t2t_revival import registration
from t2t_revival.hparams.hparams import HParams


@registration.register_hparams
def base() -> HParams:
    """The paper's base model (table 3, row "base"): 6+6 layers, 512/2048, 8 heads, post-norm."""
    return HParams()


@registration.register_hparams
def big() -> HParams:
    """The paper's big model (table 3, row "big"): 6+6 layers, 1024/4096, 16 heads, dropout 0.3."""
    return base().replace(
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        layer_prepostprocess_dropout=0.3,
        train_steps=300_000,
        average_checkpoints=20,
    )


@registration.register_hparams
def base_modern() -> HParams:
    """The base model as it is built today: pre-norm by RMS, rotary positions, SwiGLU, at equal parameters.

    See RMSNorm, RotaryAttention and GatedFeedForward for their references. Three matrices of d_ff = 1368 make
    a feed-forward network of the size of two of 2048.
    """
    return base().replace(
        pos="rotary",
        norm_type="rms",
        ffn_activation="swiglu",
        filter_size=1368,
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
    )


@registration.register_hparams
def small() -> HParams:
    """4+4 layers, 256/1024, 4 heads, pre-norm: for 10,000 to 1 million pairs on a small machine.

    Pre-norm, as in T2T's later sets, learns several times faster on small corpora.
    """
    return base().replace(
        num_hidden_layers=4,
        hidden_size=256,
        filter_size=1024,
        num_heads=4,
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        effective_batch_size=0,
        average_checkpoints=8,
    )


@registration.register_hparams
def tiny() -> HParams:
    """2+2 layers, 128/512, 4 heads, pre-norm: learns the built-in sample corpus in minutes on two cores."""
    return small().replace(
        num_hidden_layers=2,
        hidden_size=128,
        filter_size=512,
        learning_rate_warmup_steps=400,
        batch_size=2048,
        train_steps=2500,
        average_checkpoints=5,
    )


@registration.register_hparams
def parsing() -> HParams:
    """The paper's parser (section 6.3), WSJ only: 4+4 layers, d_model 1024, otherwise as base."""
    return base().replace(num_hidden_layers=4, hidden_size=1024, max_length=512)


@registration.register_hparams
def parsing_semi() -> HParams:
    """The paper's semi-supervised parser: as parsing, with the problem's larger vocabulary."""
    return parsing()


@registration.register_hparams
def parsing_small() -> HParams:
    """4+4 layers, 256/1024, 4 heads, pre-norm: for 3,000 to 40,000 trees on a small machine."""
    return small().replace(
        batch_size=2048,
        max_length=512,
        deterministic_attention=True,
        layer_prepostprocess_dropout=0.3,
        attention_dropout=0.1,
        relu_dropout=0.1,
        learning_rate_warmup_steps=2000,
        train_steps=12_000,
    )


def register_variation(set_: Callable[[], HParams], name: str, summary: str, **changes: Any) -> None:
    """Registers another set with some fields changed; `summary` is its line in `--registry_help`."""

    def variation() -> HParams:
        return set_().replace(**changes)

    variation.__name__, variation.__doc__ = name, summary
    registration.register_hparams(variation)


TABLE_3 = (  # the other rows: name, description, changed field, value, end of T2T's name
    ("table3_a_h1", "row (A): 1 head, d_k = d_v = 512", "num_heads", 1, "h1"),
    ("table3_a_h4", "row (A): 4 heads, d_k = d_v = 128", "num_heads", 4, "h4"),
    ("table3_a_h16", "row (A): 16 heads, d_k = d_v = 32", "num_heads", 16, "h16"),
    ("table3_a_h32", "row (A): 32 heads, d_k = d_v = 16", "num_heads", 32, "h32"),
    ("table3_b_dk16", "row (B): d_k = 16", "attention_key_channels", 8 * 16, "k128"),
    ("table3_b_dk32", "row (B): d_k = 32", "attention_key_channels", 8 * 32, "k256"),
    ("table3_c_n2", "row (C): 2+2 layers", "num_hidden_layers", 2, "l2"),
    ("table3_c_n4", "row (C): 4+4 layers", "num_hidden_layers", 4, "l4"),
    ("table3_c_n8", "row (C): 8+8 layers", "num_hidden_layers", 8, "l8"),
    ("table3_c_d256", "row (C): d_model = 256, d_k = d_v = 32", "hidden_size", 256, "hs256"),
    ("table3_c_d1024", "row (C): d_model = 1024, d_k = d_v = 128", "hidden_size", 1024, "hs1024"),
    ("table3_c_ff1024", "row (C): d_ff = 1024", "filter_size", 1024, "ff1024"),
    ("table3_c_ff4096", "row (C): d_ff = 4096", "filter_size", 4096, "ff4096"),
    ("table3_d_drop0", "row (D): no dropout", "layer_prepostprocess_dropout", 0.0, "dr0"),
    ("table3_d_drop2", "row (D): dropout 0.2", "layer_prepostprocess_dropout", 0.2, "dr2"),
    ("table3_d_ls0", "row (D): no label smoothing", "label_smoothing", 0.0, "ls0"),
    ("table3_d_ls2", "row (D): label smoothing 0.2", "label_smoothing", 0.2, "ls2"),
    ("table3_e_learned", "row (E): learned positional embedding instead of sinusoids", "pos", "emb", ""),
)
for _name, _description, _field, _value, _ in TABLE_3:
    register_variation(base, _name, f"Table 3, {_description}.", **{_field: _value})


@registration.register_hparams
def student_base() -> HParams:
    """12+1 layers, 512/2048, 8 heads, pre-norm: Kasai et al.'s deep encoder and decoder of one layer.

    The encoder runs once a sentence (Kasai et al., 2021, "Deep Encoder, Shallow Decoder: Reevaluating
    Non-autoregressive Machine Translation").
    Pre-norm, unlike base, since a post-norm encoder of 12 layers is hard to train (Wang et al., 2019,
    "Learning Deep Transformer Models for Machine Translation").
    """
    return base().replace(
        num_encoder_layers=12,
        num_decoder_layers=1,
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
    )


@registration.register_hparams
def student_tiny() -> HParams:
    """6+2 layers, 256/1024, 4 heads, pre-norm: a student for CPUs and small machines.

    Narrow and with a shallow decoder, as the students of Kim et al., but with self-attention in the decoder,
    where theirs has a recurrent unit: decoder_self_attention=ssru (Kim et al., 2019, "From Research to
    Production and Back: Ludicrously Fast Neural Machine Translation").
    """
    return small().replace(num_encoder_layers=6, num_decoder_layers=2)
