"""The benchmark of a step's memory: larger steps take more."""

import re
import sys
from pathlib import Path

import pytest

from tests.support.backend_process import run_with_backend

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "step_memory.py"
SIZES = "--hparams=hidden_size=64,filter_size=128,num_heads=2,num_hidden_layers=1,max_length=64,batch_size="


@pytest.mark.slow
@pytest.mark.nightly
def test_a_larger_batch_takes_more() -> None:
    pytest.importorskip("jax")
    found = []
    for batch_size in (1024, 4096):
        command = [sys.executable, str(SCRIPT), "tiny", "base", "--vocab_size=2000", f"{SIZES}{batch_size}"]
        done = run_with_backend(command, "jax")
        assert done.returncode == 0, done.stderr
        rows = re.findall(rf"\w+ +{batch_size:,} +([\d.]+) +\d+ s", done.stdout)
        found.append([float(row) for row in rows])
    assert len(found[0]) == len(found[1]) == 2
    assert all(0 < small < large for small, large in zip(*found, strict=True))
