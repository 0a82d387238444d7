"""Every row of the paper's table 3 except "base" and "big", as changes of the base model."""

from t2t_revival.hparams.base import base
from t2t_revival.hparams.variations import register_variation

ROWS = (  # name, description, changed field, value
    ("table3_a_h1", "row (A): 1 head, d_k = d_v = 512", "num_heads", 1),
    ("table3_a_h4", "row (A): 4 heads, d_k = d_v = 128", "num_heads", 4),
    ("table3_a_h16", "row (A): 16 heads, d_k = d_v = 32", "num_heads", 16),
    ("table3_a_h32", "row (A): 32 heads, d_k = d_v = 16", "num_heads", 32),
    ("table3_b_dk16", "row (B): d_k = 16", "attention_key_channels", 8 * 16),
    ("table3_b_dk32", "row (B): d_k = 32", "attention_key_channels", 8 * 32),
    ("table3_c_n2", "row (C): 2+2 layers", "num_hidden_layers", 2),
    ("table3_c_n4", "row (C): 4+4 layers", "num_hidden_layers", 4),
    ("table3_c_n8", "row (C): 8+8 layers", "num_hidden_layers", 8),
    ("table3_c_d256", "row (C): d_model = 256, d_k = d_v = 32", "hidden_size", 256),
    ("table3_c_d1024", "row (C): d_model = 1024, d_k = d_v = 128", "hidden_size", 1024),
    ("table3_c_ff1024", "row (C): d_ff = 1024", "filter_size", 1024),
    ("table3_c_ff4096", "row (C): d_ff = 4096", "filter_size", 4096),
    ("table3_d_drop0", "row (D): no dropout", "layer_prepostprocess_dropout", 0.0),
    ("table3_d_drop2", "row (D): dropout 0.2", "layer_prepostprocess_dropout", 0.2),
    ("table3_d_ls0", "row (D): no label smoothing", "label_smoothing", 0.0),
    ("table3_d_ls2", "row (D): label smoothing 0.2", "label_smoothing", 0.2),
    ("table3_e_learned", "row (E): learned positional embedding instead of sinusoids", "pos", "emb"),
)

for _name, _description, _field, _value in ROWS:
    register_variation(base, _name, f"Table 3, {_description}.", {_field: _value})
