"""The benchmarks of memory, on a little; that growth would be seen, and that larger steps take more."""

import re
import sys
from pathlib import Path

import memory
import pytest
from memory import judge_training, main, slope, watched

from tests.support.backend_process import run_with_backend

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # measures
STEPS = 100
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "step_memory.py"
SIZES = "--hparams=hidden_size=64,filter_size=128,num_heads=2,num_hidden_layers=1,max_length=64,batch_size="
TRAINING = """
import subprocess, sys, time
child = [sys.executable, "-c", "held = bytearray(60_000_000); print(flush=True); input()"]
child = subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
held = []
for step in range(1, 101):
    if {leaks} or step < 10:
        held.append(bytearray(2_000_000))
    print(f"step {{step:3}}/100  loss 1", file=sys.stderr, flush=True)
    time.sleep(0.01)
child.communicate(b"\\n")
"""


@pytest.mark.parametrize("leaks", [False, True])
def test_growth_from_update_to_update_is_seen(tmp_path, monkeypatch, leaks):
    monkeypatch.setattr(memory, "SECONDS", 0.01)
    monkeypatch.setattr(memory, "TRAINING_BOUND", 40)
    samples = watched([sys.executable, "-c", TRAINING.format(leaks=leaks)], tmp_path / "log")
    assert judge_training(samples, STEPS, print) is not leaks
    held = [sample.all - sample.main for sample in samples if sample.step > 50]
    assert max(held) > 60, "what a process has started counts"
    if leaks:
        growth = slope([sample for sample in samples if 25 < sample.step < STEPS])
        assert growth == pytest.approx(2000, rel=0.2)


def test_all_parts_on_few_pairs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(memory, "SECONDS", 0.01)  # it is over in a second
    monkeypatch.setattr(memory, "TRAINING_BOUND", 300)  # graphs and caches still grow
    few = ["--pairs=3000", "--train_pairs=2000", "--steps=40", "--decoded=0"]
    parts = "--parts=generation,reading,training"
    assert main([parts, *few, f"--work_dir={tmp_path / 'work'}"]) in (0, 1)  # 10 updates may miss a bucket
    printed = capsys.readouterr().out
    peaks = re.findall(r"generation +peak +([\d,]+) MB, ([\d,]+) pairs", printed)
    assert [pairs for _, pairs in peaks] == ["300", "3,000"]
    assert re.search(r"reading +grew by -?\d+ MB, may grow by 50: flat", printed)
    assert re.search(r"training +grew by -?\d+ MB, may grow by 300: flat", printed)


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
