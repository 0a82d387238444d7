"""The models that OPUS-MT trains with Marian."""

from __future__ import annotations

from t2t_revival import registration
from t2t_revival.hparams.base import base
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
