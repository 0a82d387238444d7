"""Every row of the paper's table 3 but "base" and "big": what differs from the base model."""

from t2t_revival import registry
from t2t_revival.hparams.base import base
from t2t_revival.hparams.hparams import HParams


@registry.register_hparams
def table3_a_h1() -> HParams:
    """Table 3, row (A): 1 head, d_k = d_v = 512."""
    return base().replace(num_heads=1)


@registry.register_hparams
def table3_a_h4() -> HParams:
    """Table 3, row (A): 4 heads, d_k = d_v = 128."""
    return base().replace(num_heads=4)


@registry.register_hparams
def table3_a_h16() -> HParams:
    """Table 3, row (A): 16 heads, d_k = d_v = 32."""
    return base().replace(num_heads=16)


@registry.register_hparams
def table3_a_h32() -> HParams:
    """Table 3, row (A): 32 heads, d_k = d_v = 16."""
    return base().replace(num_heads=32)


@registry.register_hparams
def table3_b_dk16() -> HParams:
    """Table 3, row (B): d_k = 16."""
    return base().replace(attention_key_channels=8 * 16)


@registry.register_hparams
def table3_b_dk32() -> HParams:
    """Table 3, row (B): d_k = 32."""
    return base().replace(attention_key_channels=8 * 32)


@registry.register_hparams
def table3_c_n2() -> HParams:
    """Table 3, row (C): 2+2 layers."""
    return base().replace(num_hidden_layers=2)


@registry.register_hparams
def table3_c_n4() -> HParams:
    """Table 3, row (C): 4+4 layers."""
    return base().replace(num_hidden_layers=4)


@registry.register_hparams
def table3_c_n8() -> HParams:
    """Table 3, row (C): 8+8 layers."""
    return base().replace(num_hidden_layers=8)


@registry.register_hparams
def table3_c_d256() -> HParams:
    """Table 3, row (C): d_model = 256, d_k = d_v = 32."""
    return base().replace(hidden_size=256)


@registry.register_hparams
def table3_c_d1024() -> HParams:
    """Table 3, row (C): d_model = 1024, d_k = d_v = 128."""
    return base().replace(hidden_size=1024)


@registry.register_hparams
def table3_c_ff1024() -> HParams:
    """Table 3, row (C): d_ff = 1024."""
    return base().replace(filter_size=1024)


@registry.register_hparams
def table3_c_ff4096() -> HParams:
    """Table 3, row (C): d_ff = 4096."""
    return base().replace(filter_size=4096)


@registry.register_hparams
def table3_d_drop0() -> HParams:
    """Table 3, row (D): no dropout."""
    return base().replace(layer_prepostprocess_dropout=0.0)


@registry.register_hparams
def table3_d_drop2() -> HParams:
    """Table 3, row (D): dropout 0.2."""
    return base().replace(layer_prepostprocess_dropout=0.2)


@registry.register_hparams
def table3_d_ls0() -> HParams:
    """Table 3, row (D): no label smoothing."""
    return base().replace(label_smoothing=0.0)


@registry.register_hparams
def table3_d_ls2() -> HParams:
    """Table 3, row (D): label smoothing 0.2."""
    return base().replace(label_smoothing=0.2)


@registry.register_hparams
def table3_e_learned() -> HParams:
    """Table 3, row (E): learned positional embedding instead of sinusoids."""
    return base().replace(pos="emb")
