"""The sets of T2T's `models/transformer.py` for text, with their names and values.

They differ from the paper: positions are "timing", warm-up is longer, and all but v1 are pre-norm with
dropout on attention weights and in the feed-forward network.
"""

from __future__ import annotations

from t2t_revival import registration
from t2t_revival.hparams.base import TABLE_3, register_variation
from t2t_revival.hparams.hparams import HParams


@registration.register_hparams
def transformer_base_v1() -> HParams:
    """T2T's first base model: post-norm, 4,000 warm-up steps."""
    return HParams(
        pos="timing",
        use_target_space_embedding=True,
        learning_rate_schedule="legacy",
        effective_batch_size=0,
        train_steps=250_000,  # the default of T2T's --train_steps
        average_checkpoints=8,  # the default of T2T's --n of t2t-avg-all
    )


@registration.register_hparams
def transformer_base_v2() -> HParams:
    """T2T's second base model: pre-norm, dropout in attention and feed-forward too, 8,000 warm-up steps."""
    return transformer_base_v1().replace(
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        attention_dropout=0.1,
        relu_dropout=0.1,
        learning_rate_schedule="constant*legacy",
        learning_rate_constant=2.0,  # T2T wrote 0.2, in a field that "legacy" multiplied by 10
        learning_rate_warmup_steps=8000,
    )


@registration.register_hparams
def transformer_base_v3() -> HParams:
    """T2T's third base model: as v2, with beta2 0.997."""
    return transformer_base_v2().replace(
        optimizer_adam_beta2=0.997,
        learning_rate_schedule="constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
    )


@registration.register_hparams
def transformer_base() -> HParams:
    """T2T's base model: transformer_base_v3."""
    return transformer_base_v3()


@registration.register_hparams
def transformer_big() -> HParams:
    """T2T's big model: 6+6 layers, 1024/4096, 16 heads, dropout 0.3, batches of 2,048 tokens."""
    return transformer_big_dr1().replace(batch_size=2048, layer_prepostprocess_dropout=0.3)


@registration.register_hparams
def transformer_big_dr1() -> HParams:
    """T2T's big model with dropout 0.1 and batches of 4,096 tokens."""
    return transformer_base().replace(hidden_size=1024, filter_size=4096, num_heads=16)


@registration.register_hparams
def transformer_big_dr2() -> HParams:
    """T2T's big model with dropout 0.2 and batches of 4,096 tokens."""
    return transformer_big_dr1().replace(layer_prepostprocess_dropout=0.2)


@registration.register_hparams
def transformer_big_enfr() -> HParams:
    """T2T's big model for English-French: d_ff 8192, dropout 0.1, three separate embeddings."""
    return transformer_big_dr1().replace(filter_size=8192, shared_embedding_and_softmax_weights=False)


@registration.register_hparams
def transformer_base_single_gpu() -> HParams:
    """T2T's base model for one GPU: batches of 1,024 tokens, another schedule."""
    return transformer_base().replace(
        batch_size=1024,
        learning_rate_schedule="constant*linear_warmup*rsqrt_decay",
        learning_rate_constant=0.1,
        learning_rate_warmup_steps=16_000,
    )


@registration.register_hparams
def transformer_big_single_gpu() -> HParams:
    """T2T's big model for one GPU: dropout 0.1, 16,000 warm-up steps."""
    return transformer_big().replace(layer_prepostprocess_dropout=0.1, learning_rate_warmup_steps=16_000)


@registration.register_hparams
def transformer_base_multistep8() -> HParams:
    """T2T's base model for one device instead of eight: eight micro-batches per update."""
    h = transformer_base()
    return h.replace(effective_batch_size=8 * h.batch_size)


@registration.register_hparams
def transformer_small() -> HParams:
    """T2T's small model: 2+2 layers, 256/1024, 4 heads."""
    return transformer_base().replace(num_hidden_layers=2, hidden_size=256, filter_size=1024, num_heads=4)


@registration.register_hparams
def transformer_tiny() -> HParams:
    """T2T's tiny model: 2+2 layers, 128/512, 4 heads."""
    return transformer_base().replace(num_hidden_layers=2, hidden_size=128, filter_size=512, num_heads=4)


@registration.register_hparams
def transformer_parsing_base() -> HParams:
    """T2T's parser, WSJ only: hidden size 1024, dropout 0.2, three separate embeddings."""
    return transformer_base().replace(
        hidden_size=1024,
        max_length=512,
        shared_embedding_and_softmax_weights=False,
        layer_prepostprocess_dropout=0.2,
        attention_dropout=0.2,
        learning_rate_warmup_steps=16_000,
    )


@registration.register_hparams
def transformer_parsing_big() -> HParams:
    """T2T's semi-supervised parser: the big model with dropout 0.1, 4,000 warm-up steps."""
    return transformer_big().replace(
        max_length=512, layer_prepostprocess_dropout=0.1, learning_rate_warmup_steps=4000
    )


@registration.register_hparams
def transformer_parsing_ice() -> HParams:
    """T2T's parser for Icelandic: as transformer_base_single_gpu, three separate embeddings."""
    return transformer_base_single_gpu().replace(batch_size=4096, shared_embedding_and_softmax_weights=False)


for _set, _name, _summary in (
    (
        transformer_base,
        "transformer_relative",
        "T2T's base model with relative positions (Shaw et al., 2018), alike from a distance of 20 on.",
    ),
    (transformer_tiny, "transformer_relative_tiny", "T2T's tiny model with relative positions."),
    (transformer_big, "transformer_relative_big", "T2T's big model with relative positions."),
):
    register_variation(_set, _name, _summary, pos="relative", max_relative_position=20)

# The rows of table 3, on T2T's base model.
for *_, _field, _value, _name in (*TABLE_3, ("num_hidden_layers", 10, "l10")):
    if _name:
        summary = f"T2T's base model with {_field}={_value}."
        register_variation(transformer_base, f"transformer_{_name}", summary, **{_field: _value})
