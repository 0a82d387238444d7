"""Sets for constituency parsing (section 6.3)."""

from t2t_revival import registry
from t2t_revival.hparams.base import base, small
from t2t_revival.hparams.hparams import HParams


@registry.register_hparams
def parsing() -> HParams:
    """The paper's parser, WSJ only: 4+4 layers, d_model 1024, otherwise as base."""
    return base().replace(num_hidden_layers=4, hidden_size=1024, max_length=512)


@registry.register_hparams
def parsing_semi() -> HParams:
    """The paper's semi-supervised parser: as parsing, with the problem's larger vocabulary."""
    return parsing()


@registry.register_hparams
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
