"""The registered sets: the paper's Table 3, row by row."""

import dataclasses
from typing import Any

import pytest

from t2t_revival import HParams, registry

# Table 3: what each row changes in the base model. d_k and d_v are per head there, so that rows (A) and
# (C) keep h * d_k = h * d_v = d_model, which is our default, and rows (B) do not.
ROWS: dict[str, dict[str, Any]] = {
    "table3_a_h1": {"num_heads": 1},
    "table3_a_h4": {"num_heads": 4},
    "table3_a_h16": {"num_heads": 16},
    "table3_a_h32": {"num_heads": 32},
    "table3_b_dk16": {"attention_key_channels": 128},
    "table3_b_dk32": {"attention_key_channels": 256},
    "table3_c_n2": {"num_hidden_layers": 2},
    "table3_c_n4": {"num_hidden_layers": 4},
    "table3_c_n8": {"num_hidden_layers": 8},
    "table3_c_d256": {"hidden_size": 256},
    "table3_c_d1024": {"hidden_size": 1024},
    "table3_c_ff1024": {"filter_size": 1024},
    "table3_c_ff4096": {"filter_size": 4096},
    "table3_d_drop0": {"layer_prepostprocess_dropout": 0.0},
    "table3_d_drop2": {"layer_prepostprocess_dropout": 0.2},
    "table3_d_ls0": {"label_smoothing": 0.0},
    "table3_d_ls2": {"label_smoothing": 0.2},
    "table3_e_learned": {"pos": "emb"},
    "big": {
        "hidden_size": 1024,
        "filter_size": 4096,
        "num_heads": 16,
        "layer_prepostprocess_dropout": 0.3,
        "train_steps": 300_000,
        "average_checkpoints": 20,  # section 6.1
    },
}


def test_base_is_the_papers() -> None:
    h = registry.hparams("base")
    assert (h.num_hidden_layers, h.hidden_size, h.filter_size, h.num_heads) == (6, 512, 2048, 8)
    assert (h.layer_prepostprocess_dropout, h.label_smoothing) == (0.1, 0.1)
    assert (h.attention_dropout, h.relu_dropout) == (0.0, 0.0)
    assert (h.optimizer_adam_beta1, h.optimizer_adam_beta2, h.optimizer_adam_epsilon) == (0.9, 0.98, 1e-9)
    assert (h.learning_rate_constant, h.learning_rate_warmup_steps) == (1.0, 4000)
    assert (h.effective_batch_size, h.train_steps, h.average_checkpoints) == (25_000, 100_000, 5)
    assert (h.pre_norm, h.pos, h.shared_embedding_and_softmax_weights) == (False, "sinusoid", True)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_table_3_changes_what_it_says(name: str) -> None:
    base = dataclasses.asdict(registry.hparams("base"))
    row = dataclasses.asdict(registry.hparams(name))
    assert {field: value for field, value in row.items() if value != base[field]} == ROWS[name]


def test_every_set_can_be_made_and_says_what_it_is() -> None:
    known = registry.list_hparams()
    assert {"base", "big", "small", "tiny", *ROWS} <= set(known)
    for name, summary in known.items():
        assert isinstance(registry.hparams(name), HParams)
        assert summary.endswith("."), name


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("small", (4, 4, 256, 1024, 4)),
        ("student_base", (12, 1, 512, 2048, 8)),  # deep encoders, shallow decoders
        ("student_tiny", (6, 2, 256, 1024, 4)),
    ],
)
def test_smaller_sets(name: str, sizes: tuple[int, ...]) -> None:
    h = registry.hparams(name)
    assert (h.encoder_layers, h.decoder_layers, h.hidden_size, h.filter_size, h.num_heads) == sizes
    assert (h.pre_norm, h.layer_prepostprocess_dropout, h.label_smoothing) == (True, 0.1, 0.1)
