"""A contestant's settings as this project's hparams."""

from __future__ import annotations

from contestant import Config

from t2t_revival import HParams


def hparams_of(config: Config) -> HParams:
    """Returns the hparams of the same model and training, without accumulation of gradients."""
    return HParams(
        num_hidden_layers=config.layers,
        hidden_size=config.hidden_size,
        filter_size=config.filter_size,
        num_heads=config.heads,
        layer_prepostprocess_dropout=config.dropout,
        attention_dropout=config.inner_dropout,
        relu_dropout=config.inner_dropout,
        label_smoothing=config.label_smoothing,
        learning_rate_constant=config.learning_rate_constant,
        learning_rate_warmup_steps=config.learning_rate_warmup_steps,
        effective_batch_size=0,
    )
