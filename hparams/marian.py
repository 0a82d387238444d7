"""Models as others train them: OPUS-MT and Bergamot with Marian, M2M100 and NLLB with fairseq."""

from __future__ import annotations

from t2t_revival import registration
from t2t_revival.hparams.base import base, small
from t2t_revival.hparams.hparams import HParams


@registration.register_hparams
def marian_base() -> HParams:
    """OPUS-MT's base model: post-norm, swish, biases of projections and logits, T2T's positions.

    The learning rate is that of OPUS-MT's trainings: 0.0003 after 16,000 updates.
    """
    return base().replace(
        pos="timing",
        ffn_activation="swish",
        projection_bias=True,
        softmax_bias=True,
        learning_rate_warmup_steps=16_000,
        learning_rate_constant=0.86,
    )


@registration.register_hparams
def marian_tiny() -> HParams:
    """6+2 layers, 256/1536, 8 heads, post-norm, SSRU: a student for browsers, as Bergamot's and Firefox's.

    Of the shape that Bergamot calls tiny, with the training of small.
    """
    return small().replace(
        num_encoder_layers=6,
        num_decoder_layers=2,
        filter_size=1536,
        num_heads=8,
        layer_preprocess_sequence="none",
        layer_postprocess_sequence="dan",
        decoder_self_attention="ssru",
        pos="timing",
        projection_bias=True,
        softmax_bias=True,
    )


@registration.register_hparams
def m2m100() -> HParams:
    """M2M100 of 418 million weights and NLLB-200 of 600: 12+12 layers, 1024/4096, 16 heads, pre-norm, relu.

    Positions count from 2 and outputs start with EOS, as in fairseq. The rate is for fine-tuning: 0.0001
    after 2,500 updates.
    """
    return base().replace(
        num_hidden_layers=12,
        hidden_size=1024,
        filter_size=4096,
        num_heads=16,
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        pos="fairseq",
        start_token=1,
        projection_bias=True,
        norm_epsilon=1e-5,
        attention_dropout=0.1,
        max_length=1024,
        learning_rate_warmup_steps=2500,
        learning_rate_constant=0.16,
    )
