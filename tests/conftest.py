"""What all tests share."""

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest

from t2t_revival.hparams import HParams

TESTS = Path(__file__).parent


@pytest.fixture
def tiny_hparams() -> HParams:
    """2+2 layers, 8/16, 2 heads, no dropout: the smallest model in which nothing is trivial."""
    return HParams(
        num_hidden_layers=2,
        hidden_size=8,
        filter_size=16,
        num_heads=2,
        layer_prepostprocess_dropout=0.0,
        learning_rate_warmup_steps=10,
    )


@pytest.fixture
def reference_dir() -> Path:
    """Numbers that tensor2tensor computed; tests/reference/README.md says how."""
    return TESTS / "reference"
