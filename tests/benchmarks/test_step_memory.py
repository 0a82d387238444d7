"""The benchmark of a step's memory: larger steps take more."""

import re
import sys
from pathlib import Path

import pytest

from tests.support.backend_process import run_with_backend

pytest.importorskip("jax")
pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "step_memory.py"
SIZES = "--hparams=hidden_size=64,filter_size=128,num_heads=2,num_hidden_layers=1,max_length=64,batch_size="


def run(*flags: str) -> tuple[int, str]:
    done = run_with_backend([sys.executable, str(SCRIPT), *flags], "jax")
    return done.returncode, done.stdout + done.stderr


def test_a_larger_batch_takes_more() -> None:
    found = []
    for batch_size in (1024, 4096):
        status, said = run("tiny", "base", "--vocab_size=2000", f"{SIZES}{batch_size}")
        assert status == 0, said
        found.append([float(row) for row in re.findall(rf"\w+ +{batch_size:,} +([\d.]+) +\d+ s", said)])
    assert len(found[0]) == len(found[1]) == 2
    assert all(0 < small < large for small, large in zip(*found, strict=True))


def test_an_unknown_set_is_named() -> None:
    status, said = run("bse")
    assert status == 2
    assert "did you mean base" in said
