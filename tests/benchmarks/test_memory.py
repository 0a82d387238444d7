"""The benchmark of memory, on a little; and that growth would be seen."""

import re
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import memory  # noqa: E402
from memory import Sample, bounded, judge_training, main, peak, quarters, slope, watched  # noqa: E402

STEPS = 100
TRAINING = """
import subprocess, sys, time
child = [sys.executable, "-c", "held = bytearray(60_000_000); input()"]
child = subprocess.Popen(child, stdin=subprocess.PIPE)
held = []
for step in range(1, 101):
    if {leaks} or step < 10:
        held.append(bytearray(2_000_000))
    print(f"step {{step:3}}/100  loss 1", file=sys.stderr, flush=True)
    time.sleep(0.01)
child.communicate(b"\\n")
"""


@pytest.mark.parametrize(("leaks", "flat"), [(False, True), (True, False)])
def test_growth_from_update_to_update_is_seen(tmp_path, monkeypatch, leaks, flat):
    monkeypatch.setattr(memory, "SECONDS", 0.01)
    monkeypatch.setattr(memory, "TRAINING_BOUND", 40)
    samples = watched([sys.executable, "-c", TRAINING.format(leaks=leaks)], tmp_path / "log")
    told = []
    assert judge_training(samples, STEPS, told.append) == flat
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
    told = []
    assert bounded("part", growth, 10, told.append) == (said == "flat")
    assert told[0].endswith(f": {said}")


@pytest.mark.parametrize(("bound", "status"), [(50, 0), (-1000, 1)])
def test_generation_of_a_few_pairs(tmp_path, monkeypatch, capsys, bound, status):
    monkeypatch.setattr(memory, "SECONDS", 0.01)  # it is over in a second
    monkeypatch.setattr(memory, "GENERATION_BOUND", bound)
    assert main(["--parts=generation", "--pairs=3000", f"--work_dir={tmp_path / 'work'}"]) == status
    said = re.findall(r"peak +([\d,]+) MB, ([\d,]+) pairs", capsys.readouterr().out)
    assert [pairs for _, pairs in said] == ["300", "3,000"]
    assert all(30 < int(most) < 1000 for most, _ in said)


@pytest.mark.slow
def test_a_short_training_and_an_epoch(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(memory, "TRAINING_BOUND", 300)  # it has hardly begun
    work = f"--work_dir={tmp_path / 'work'}"
    assert main(["--parts=generation,reading", "--pairs=3000", work]) == 0
    assert main(["--parts=training", "--steps=80", work]) in (0, 1)  # 20 updates may miss a bucket
    said = capsys.readouterr().out
    assert re.search(r"training +peak +[\d,]+ MB, 80 updates; by quarters (\d[\d,]+, ){3}\d[\d,]+; ", said)
    assert re.search(r"training +grew by -?\d+ MB, may grow by 300: flat", said)
    assert re.search(r"reading +grew by -?\d+ MB, may grow by 50: flat", said)
    assert re.search(r"training +\d+ of \d+ buckets of lengths in the first 20 updates", said)
