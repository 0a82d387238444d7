"""The benchmark of memory, on a little; and that growth would be seen."""

import re
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
import memory  # noqa: E402
from memory import Sample, bounded, judge_training, main, peak, quarters, slope, watched  # noqa: E402

STEPS = 100
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


@pytest.mark.slow
@pytest.mark.parametrize(("leaks", "flat"), [(False, True), (True, False)])
def test_growth_from_update_to_update_is_seen(tmp_path, monkeypatch, leaks, flat):
    monkeypatch.setattr(memory, "SECONDS", 0.01)
    monkeypatch.setattr(memory, "TRAINING_BOUND", 40)
    samples = watched([sys.executable, "-c", TRAINING.format(leaks=leaks)], tmp_path / "log")
    messages = []
    assert judge_training(samples, STEPS, messages.append) == flat
    held = [sample.all - sample.main for sample in samples if sample.step > 50]
    assert max(held) > 60, "what a process has started counts"
    if leaks:
        assert slope([sample for sample in samples if 25 < sample.step < STEPS]) == pytest.approx(
            2000, rel=0.2
        )


def test_a_process_that_fails_is_no_measurement(tmp_path):
    with pytest.raises(RuntimeError, match="ended with 3:\nwhy"):
        watched(
            [sys.executable, "-c", "import sys; print('why', file=sys.stderr); sys.exit(3)"], tmp_path / "log"
        )


def test_quarters_have_all_samples():
    samples = [Sample(1.0, float(step), step) for step in range(9)]
    assert [[sample.step for sample in part] for part in quarters(samples, 8)] == [
        [0, 1, 2],
        [3, 4],
        [5, 6],
        [7, 8],
    ]
    assert peak(samples) == 8.0


@pytest.mark.parametrize(("growth", "said"), [(10, "flat"), (10.5, "NOT FLAT")])
def test_the_bound(growth, said):
    messages = []
    assert bounded("part", growth, 10, messages.append) == (said == "flat")
    assert messages[0].endswith(f": {said}")


@pytest.mark.parametrize(("flat", "status"), [(True, 0), (False, 1)])
def test_a_bound_that_is_exceeded_is_the_exit_status(tmp_path, monkeypatch, flat, status):
    monkeypatch.setattr(memory, "measure_generation", lambda *_: flat)
    assert main(["--parts=generation", f"--work_dir={tmp_path / 'work'}"]) == status


@pytest.mark.slow
def test_generation_and_reading_of_a_few_pairs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(memory, "SECONDS", 0.01)  # it is over in a second
    assert main(["--parts=generation,reading", "--pairs=3000", f"--work_dir={tmp_path / 'work'}"]) == 0
    printed = capsys.readouterr().out
    peaks = re.findall(r"generation +peak +([\d,]+) MB, ([\d,]+) pairs", printed)
    assert [pairs for _, pairs in peaks] == ["300", "3,000"]
    assert all(30 < int(megabytes) < 1000 for megabytes, _ in peaks)
    assert re.search(r"reading +grew by -?\d+ MB, may grow by 50: flat", printed)


@pytest.mark.slow
def test_a_short_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(memory, "TRAINING_BOUND", 300)  # graphs and caches still grow
    work = f"--work_dir={tmp_path / 'work'}"
    few = ["--train_pairs=2000", "--decoded=0"]
    assert main(["--parts=training", "--steps=40", *few, work]) in (0, 1)  # 10 updates may miss a bucket
    printed = capsys.readouterr().out
    assert re.search(r"training +peak +[\d,]+ MB, 40 updates; by quarters (\d[\d,]+, ){3}\d[\d,]+; ", printed)
    assert re.search(r"training +grew by -?\d+ MB, may grow by 300: flat", printed)
    assert re.search(r"training +\d+ of \d+ buckets of lengths in the first 10 updates", printed)
