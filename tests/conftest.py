"""What all tests share."""

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest

from t2t_revival.hparams import HParams

TESTS = Path(__file__).parent
SUBTOKENS = [
    "<pad>_",
    "<EOS>_",
    "the_",
    "dog",
    "do",
    "og_",
    "s_",
    ", _",
    "_",
    "\\u",
    "\\",
    ";_",
    "1",
    "ü",
    "é_",
]


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


@pytest.fixture(scope="session")
def subwords_file(tmp_path_factory):
    """Few subtokens, the longer ones made so that greedy choices matter; each character is one."""
    alphabet = {c for subtoken in SUBTOKENS for c in subtoken} | set("\\_u;0123456789 abc\u00a0日")
    subtokens = [*SUBTOKENS, *sorted(alphabet.difference(SUBTOKENS))]
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.translate_ende_toy.64.subwords"
    path.write_text("".join(f"'{subtoken}'\n" for subtoken in subtokens), encoding="utf-8")
    return path
