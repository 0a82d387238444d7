"""Scales of reproduction keep the proportions of the paper's table 3."""

import pytest

from t2t_revival import registry
from t2t_revival.reproduction.scales import CPU, PAPER
from t2t_revival.reproduction.table3 import ROWS


@pytest.mark.parametrize("name", ROWS)
def test_a_small_row_keeps_its_proportions_to_the_base_model_and_the_papers_scale_changes_none(name) -> None:
    base, row = registry.hparams("base"), registry.hparams(name)
    assert PAPER.overrides(row) == ""
    small_base, small_row = CPU.adapt(base), CPU.adapt(row)
    for field in ("num_hidden_layers", "hidden_size", "filter_size", "num_heads", "key_channels"):
        assert getattr(small_row, field) * getattr(base, field) == getattr(row, field) * getattr(
            small_base, field
        ), field
    assert small_row.train_steps == pytest.approx(
        row.train_steps / base.train_steps * small_base.train_steps, abs=3
    )
    for field in ("layer_prepostprocess_dropout", "label_smoothing", "pos", "num_heads"):
        assert getattr(small_row, field) == getattr(row, field)
    assert small_row.pre_norm == small_base.pre_norm
    assert registry.hparams(name, CPU.overrides(row)) == small_row
