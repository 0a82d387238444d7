"""A model that trains within minutes on two CPU cores."""

from t2t_revival import registry
from t2t_revival.hparams.base import base
from t2t_revival.hparams.hparams import HParams


@registry.register_hparams
def tiny() -> HParams:
    """2+2 layers, 128/512, 4 heads, pre-norm: learns the built-in sample corpus in minutes on two cores."""
    return base().replace(
        num_hidden_layers=2,
        hidden_size=128,
        filter_size=512,
        num_heads=4,
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
        learning_rate_warmup_steps=400,
        batch_size=2048,
        effective_batch_size=0,
        train_steps=2500,
    )
