"""A contestant's settings as this project's hparams, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from t2t_revival import HParams

if TYPE_CHECKING:
    from contestant import Config

SAME = {  # fields of `Config` and their hparams
    "layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "filter_size": "filter_size",
    "heads": "num_heads",
    "dropout": "layer_prepostprocess_dropout",
    "inner_dropout": "attention_dropout",
    "label_smoothing": "label_smoothing",
    "learning_rate_constant": "learning_rate_constant",
    "learning_rate_warmup_steps": "learning_rate_warmup_steps",
}


def hparams_of(config: Config) -> HParams:
    """Returns the hparams of the same model and training, without accumulation of gradients."""
    same = {name: getattr(config, field) for field, name in SAME.items()}
    return HParams(**same, relu_dropout=config.inner_dropout, effective_batch_size=0)


def settings_of(hparams: HParams) -> dict[str, Any]:
    """Returns the fields of `Config` that are hparams."""
    return {field: getattr(hparams, name) for field, name in SAME.items()}
