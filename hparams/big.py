"""The paper's big model."""

from t2t_revival import registry
from t2t_revival.hparams.base import base
from t2t_revival.hparams.hparams import HParams


@registry.register_hparams
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
