"""The paper's base model, and a smaller one."""

from t2t_revival import registry
from t2t_revival.hparams.hparams import HParams


@registry.register_hparams
def base() -> HParams:
    """The paper's base model (table 3, row "base"): 6+6 layers, 512/2048, 8 heads, post-norm."""
    return HParams()


@registry.register_hparams
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
