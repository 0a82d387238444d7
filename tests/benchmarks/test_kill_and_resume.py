"""A few of the kills; and that a difference would be seen."""

import numpy as np
import pytest
from kill_and_resume import DATA, Training, differences, run

from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.selection import keep_best
from tests.support.processes import Process, run_command


def start(training: Training) -> Process:
    """Starts it in a process that has TensorFlow imported."""
    return Process(training.folder, run_command, ["t2t-trainer", *training.flags])


@pytest.mark.slow
@pytest.mark.nightly
def test_a_killed_training_ends_with_the_same_bits(tmp_path, monkeypatch):
    """Nothing is decoded: each process would make a graph for it, and equal weights decode alike."""
    monkeypatch.setattr(Training, "start", start)
    outcome = run(tmp_path / "work", kills=4, steps=60, seed=3, decoded_sentences=0)
    assert outcome.kills.total() == 4
    assert outcome.kills[DATA] >= 1
    assert len(outcome.kills) >= 3
    assert outcome.trainings >= 1
    assert outcome.differences == []


def training(folder, **changes):
    one = Training(folder / "corpus", folder, 3)
    one.data.mkdir(parents=True)
    (one.data / "x-train-00000-of-00001").write_bytes(changes.get("shard", b"abc"))
    arrays = {"model/transformer/a": np.float32([1, changes.get("weight", 2)])}
    meta = {"step": 3, "seen": {"examples": changes.get("examples", 5), "seconds": changes.get("seconds", 1)}}
    row = (3, 5, changes.get("seconds", 1), changes.get("loss", 2.5))
    checkpoints.save(one.output / checkpoints.file_name(3), arrays, meta)
    keep_best(one.output, {3: 2.5}, "loss", changes.get("best", 1))
    (one.output / "dev.csv").write_text("step,target_tokens,seconds,loss\n" + ",".join(map(str, row)) + "\n")
    return one


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"seconds": 9}, []),
        ({"shard": b"abd"}, ["shard x-train-00000-of-00001"]),
        ({"weight": np.nextafter(np.float32(2), 3)}, ["model/transformer/a", "best"]),
        ({"examples": 6}, ["seen"]),
        ({"loss": 2.25}, ["dev.csv"]),
        ({"best": 0}, ["best"]),
    ],
)
def test_a_difference_is_seen(tmp_path, changes, expected):
    assert differences(training(tmp_path / "one"), training(tmp_path / "other", **changes)) == expected
