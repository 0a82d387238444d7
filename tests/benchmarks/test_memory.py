"""The benchmarks of memory: growth is seen and changes the exit status, larger steps take more."""

import json
import sys

import memory
import pytest
from result_file import ROOT

from tests.support.backend_process import run_with_backend

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # measures
TRAINING = """import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "held = bytearray(60_000_000); input()"], stdin=-1)
held = []
for step in range(1, 101):
    held += [bytearray(2_000_000)] * ({leaks} or step < 10)
    print(f"step {{step:3}}/100  loss 1", file=sys.stderr, flush=True); time.sleep(0.01)"""


@pytest.mark.parametrize(("leaks", "growth"), [(False, 0), (True, 100)])  # 2 MB for each of 50 updates
def test_growth_from_update_to_update_is_seen(tmp_path, monkeypatch, leaks, growth):
    monkeypatch.setattr(memory, "SECONDS", 0.01)
    samples = memory.watched([sys.executable, "-c", TRAINING.format(leaks=leaks)], tmp_path / "log")
    figures = memory.judged("training", memory.quarters(samples, 100), 1)
    assert figures["growth_mb"] == pytest.approx(growth, abs=20)
    assert figures["its_descendants_mb"][3] > 60


@pytest.mark.parametrize(("steps", "pairs", "bound"), [(40, 0, 300), (0, 3000, -500)])
def test_the_exit_status_tells_whether_memory_grew(monkeypatch, steps, pairs, bound):
    monkeypatch.setattr(memory, "SECONDS", 0.01)  # it is over in a second
    monkeypatch.setattr(memory, "BOUNDS", {"training": bound, "generation": bound})
    assert memory.main([f"--steps={steps}", f"--pairs={pairs}"]) == (bound < 0)


def test_a_larger_batch_takes_more(tmp_path):
    pytest.importorskip("jax")
    found = []
    for size, out in ((1024, tmp_path / "small"), (4096, tmp_path / "large")):
        sizes = f"--hparams=hidden_size=64,num_hidden_layers=1,max_length=64,batch_size={size}"
        command = [sys.executable, f"{ROOT}/benchmarks/step_memory.py", "tiny", "base", f"--out={out}"]
        assert not run_with_backend([*command, "--vocab_size=2000", sizes], "jax").returncode
        found.append([step["gb"] for step in json.loads(out.read_text())["results"]])
    assert all(0 < small < large for small, large in zip(*found, strict=True))
