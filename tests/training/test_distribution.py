"""Trainings of several processes: their configuration, how they stop, and the loss of a worker."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
import tensorflow as tf

from t2t_revival import RunConfig, T2TError
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.training import trainer
from t2t_revival.training.engines.tensorflow_engine import VARIABLE, TensorFlowEngine, make_strategy
from tests.support import copy_task
from tests.support.copy_shards import HPARAMS, VOCAB
from tests.support.copy_task import Job, finished, start_workers, train

CLUSTER = {"worker": ["a:1", "b:1"]}


@pytest.mark.parametrize(
    "value",
    [
        None,
        "{",
        {"cluster": CLUSTER},
        {"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}},
        {"cluster": {**CLUSTER, "ps": ["c:1"]}, "task": {"type": "ps", "index": 0}},
        {"cluster": CLUSTER, "task": {"type": "worker", "index": 2}},
    ],
)
def test_what_is_no_tf_config(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value if isinstance(value, str) else json.dumps(value))
    with pytest.raises(T2TError, match=r"needs the environment variable TF_CONFIG, .*t2t-make-tf-configs"):
        make_strategy("multi_worker")


def test_a_loss_while_the_model_is_built_is_one_line(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_several(config: RunConfig) -> TensorFlowEngine:
        engine = TensorFlowEngine(config)
        engine.several = True
        return engine

    def lost(*arguments: object) -> None:
        raise tf.errors.UnavailableError(None, None, "Socket closed")

    monkeypatch.setattr(trainer, "build_model", lost)
    with pytest.raises(tf.errors.UnavailableError):
        train(shards, HPARAMS, VOCAB, RunConfig(tmp_path))
    monkeypatch.setattr(copy_task, "_engine", of_several)
    with pytest.raises(T2TError, match="lost another worker: start the same command again on all machines"):
        train(shards, HPARAMS, VOCAB, RunConfig(tmp_path))


@pytest.mark.slow
def test_workers_stop_together_go_on_and_notice_a_loss(shards: list[Path], tmp_path: Path) -> None:
    hparams = HPARAMS.replace(train_steps=100_000)
    job = Job(tmp_path / "out", shards, hparams, {"eval_frequency": 3})
    chief, other = start_workers(tmp_path / "first", 2, [job])
    chief.wait_for("^step 3$")
    other.send_signal(signal.SIGTERM)
    outcomes = [outcome for process in (chief, other) for outcome in finished(process, timeout=120)]
    assert [outcome["stopped_by"] for outcome in outcomes] == ["SIGTERM", "SIGTERM"]
    last = checkpoints.list_checkpoints(tmp_path / "out")[-1].step
    assert last == outcomes[0]["step"] == outcomes[1]["step"]

    chief, other = start_workers(tmp_path / "second", 2, [job])
    chief.wait_for(f"^step {last + 4}$")
    assert chief.out.startswith(f"step {last + 1}\n")
    other.kill()
    began = time.monotonic()
    assert chief.wait(timeout=120) == 1
    assert time.monotonic() - began < 60
    assert "lost another worker: start the same command again on all machines" in chief.err
    assert checkpoints.list_checkpoints(tmp_path / "out")[-1].step > last
