"""Training as `t2t-trainer` runs it: what is learned, resumed, accumulated and stopped."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival.errors import T2TError
from t2t_revival.training.checkpoints import directory as checkpoints
from t2t_revival.training.checkpoints.file import trained_on
from t2t_revival.training.curve_files import DEV, TRAIN, read_curve
from t2t_revival.training.events import EvaluatedEvent, NoteEvent, SavedEvent, Scores, StepEvent
from t2t_revival.training.loop import Result, Training, TrainingData
from t2t_revival.training.run_config import RunConfig
from t2t_revival.training.state import Fingerprints
from tests.support.copy_task import HPARAMS, VOCAB, final_arrays, start, train

pytestmark = pytest.mark.usefixtures("models")


@pytest.fixture(scope="module")
def whole(shards: list[Path], models: dict, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A run of 8 updates without interruption, and its result; a test that changes the run takes `copy`."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, train(shards, HPARAMS, VOCAB, RunConfig(folder))


@pytest.fixture
def copy(whole: tuple[Path, Result], tmp_path: Path) -> Path:
    """A copy of the whole run."""
    return shutil.copytree(whole[0], tmp_path / "copy")


def test_it_learns_to_copy(shards: list[Path], tmp_path: Path) -> None:
    events: list = []
    hparams = HPARAMS.replace(train_steps=500, layer_prepostprocess_dropout=0.0, label_smoothing=0.0)
    result = train(shards, hparams, VOCAB, RunConfig(tmp_path, log_steps=50), on_event=events.append)
    losses = [n.loss for n in events if isinstance(n, StepEvent)]
    assert result.step == 500
    assert losses[0] > 2.0
    assert losses[-1] < 0.25, "a model that attends to its source copies it"
    assert [row["step"] for row in read_curve(tmp_path, TRAIN)] == [1, *range(50, 501, 50)]


def test_a_resumed_run_ends_with_the_same_bits(
    shards: list[Path], whole: tuple[Path, Result], models: dict, tmp_path: Path
) -> None:
    parts = RunConfig(tmp_path)
    train(shards, HPARAMS.replace(train_steps=3), VOCAB, parts)
    models.clear()  # nothing but the checkpoint goes on
    result = train(shards, HPARAMS, VOCAB, parts)
    expected, found = final_arrays(whole[0]), final_arrays(tmp_path)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    assert result.seen.examples > 0


def test_seen_counts_all_sessions(shards: list[Path], whole: tuple[Path, Result], tmp_path: Path) -> None:
    seen = whole[1].seen
    train(shards, HPARAMS.replace(train_steps=5), VOCAB, RunConfig(tmp_path))
    parts = train(shards, HPARAMS, VOCAB, RunConfig(tmp_path)).seen
    assert (seen.target_tokens, seen.examples) == (parts.target_tokens, parts.examples)


def test_accumulated_updates_see_the_effective_batch(
    shards: list[Path], whole: tuple[Path, Result], tmp_path: Path
) -> None:
    one = whole[1].seen.target_tokens
    accumulated = HPARAMS.replace(effective_batch_size=1024)
    four = train(shards, accumulated, VOCAB, RunConfig(tmp_path)).seen.target_tokens
    assert 3.5 < four / one < 4.5


def test_a_run_goes_on_with_another_number_of_micro_batches(shards: list[Path], tmp_path: Path) -> None:
    """As when it moves to a machine with more devices: the learning rate follows the updates."""
    events: list = []
    first = HPARAMS.replace(effective_batch_size=1024, train_steps=3)
    train(shards, first, VOCAB, RunConfig(tmp_path, log_steps=1), on_event=events.append)
    for accumulate in (2, 1):
        hparams = first.replace(effective_batch_size=256 * accumulate, train_steps=events[-2].step + 2)
        train(shards, hparams, VOCAB, RunConfig(tmp_path, log_steps=1), on_event=events.append)
    rates = [n.learning_rate for n in events if isinstance(n, StepEvent)]
    expected = [32**-0.5 * step * 40**-1.5 for step in range(1, 8)]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


def test_evaluation_saves_reports_and_draws(shards: list[Path], tmp_path: Path) -> None:
    events: list = []
    scores = iter([{"loss": 3.0}, {"loss": 2.0}, {"loss": 2.5}])
    config = RunConfig(tmp_path, eval_frequency=3, log_steps=2, keep_checkpoints=2)
    result = train(shards, HPARAMS, VOCAB, config, lambda model: next(scores), events.append)
    assert [n.step for n in events if isinstance(n, EvaluatedEvent)] == [3, 6, 8]
    assert [n.step for n in events if isinstance(n, SavedEvent)] == [3, 6, 8]
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [6, 8]
    assert [row["loss"] for row in read_curve(tmp_path, DEV)] == [3.0, 2.0, 2.5]
    assert result.scores == {"loss": 2.5}
    assert any(path.name.startswith("events") for path in (tmp_path / "eval").iterdir())


def test_early_stopping(shards: list[Path], tmp_path: Path) -> None:
    scores = iter([{"bleu": 10.0}, {"bleu": 9.0}, {"bleu": 10.0}, {"bleu": 11.0}])
    config = RunConfig(tmp_path, eval_frequency=1, patience=2, patience_score="bleu")
    result = train(shards, HPARAMS, VOCAB, config, lambda model: next(scores))
    assert (result.step, result.stopped_by) == (3, "early stopping")


def test_early_stopping_counts_scores_on_the_dev_data_of_now(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_frequency=1, patience=3)

    def stopped(train_steps: int, first: float, data: str) -> tuple[int, str | None]:
        """With losses that get better from `first` on."""
        losses = (first - n / 10 for n in count())
        training_data = TrainingData(shards, VOCAB, fingerprints=Fingerprints("train", data))
        hparams = HPARAMS.replace(train_steps=train_steps)
        result = Training(training_data, hparams, config, lambda model: {"loss": next(losses)}).run()
        return result.step, result.stopped_by

    assert stopped(2, 1.0, "a") == (2, None)
    assert stopped(7, 5.0, "b") == (7, None), "0.9 at step 2 is of other data"
    assert stopped(9, 6.0, "a") == (8, "early stopping"), "0.9 at step 2 is of the same data"


def test_other_training_data_begins_at_its_first_batch(shards: list[Path], tmp_path: Path) -> None:
    def training(steps: int, data: str) -> Training:
        hparams = HPARAMS.replace(train_steps=steps)
        training_data = TrainingData(shards, VOCAB, fingerprints=Fingerprints(data))
        return Training(training_data, hparams, RunConfig(tmp_path))

    training(3, "a").run()
    same, other, unknown = (training(4, data)._first_batch() for data in ("a", "b", ""))
    assert (same.epoch, same.batch) == (0, 3) == (unknown.epoch, unknown.batch)
    assert (other.epoch, other.batch) == (0, 0)
    training(4, "b").run()
    assert [trained_on(tmp_path / f"model.ckpt-{step}.npz") for step in (3, 4)] == ["a", "b"]


def test_an_unknown_early_stopping_metric_names_the_known(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_frequency=1, patience=2, patience_score="blue")
    with pytest.raises(T2TError, match=r"blue is not measured; known: loss, bleu"):
        train(shards, HPARAMS, VOCAB, config, lambda model: {"loss": 1.0, "bleu": 1.0})


def killed_while_evaluating(shards: list[Path], output_dir: Path, step: int, **config: Any) -> None:
    """Trains until the evaluation of that step, which does not come to its end."""
    before = iter(range(3, step, 3))

    def evaluate(model: object) -> Scores:
        if next(before, None) is None:
            raise KeyboardInterrupt
        return {"loss": 9.0}

    with pytest.raises(KeyboardInterrupt):
        train(shards, HPARAMS, VOCAB, RunConfig(output_dir, eval_frequency=3, **config), evaluate)
    assert checkpoints.list_checkpoints(output_dir)[-1].step == step


@pytest.mark.parametrize("step", [3, 6, 8])
def test_an_evaluation_that_was_cut_short_is_made_up_for(
    shards: list[Path], tmp_path: Path, step: int
) -> None:
    killed_while_evaluating(shards, tmp_path, step)
    events: list = []
    config = RunConfig(tmp_path, eval_frequency=3)
    result = train(shards, HPARAMS, VOCAB, config, lambda model: {"loss": 1.0}, events.append)
    left = [s for s in (3, 6, 8) if s >= step]
    assert [n.step for n in events if isinstance(n, EvaluatedEvent)] == left
    assert [row["step"] for row in read_curve(tmp_path, DEV)] == [3, 6, 8]
    assert (result.step, result.stopped_by, result.scores) == (8, None, {"loss": 1.0})
    assert [n.step for n in events if isinstance(n, SavedEvent)] == left[1:]
    with pytest.raises(T2TError, match="at step 8 already"):
        train(shards, HPARAMS, VOCAB, config, lambda model: {"loss": 1.0})


def test_an_evaluation_that_is_made_up_for_may_stop_early(shards: list[Path], tmp_path: Path) -> None:
    killed_while_evaluating(shards, tmp_path, 6)
    config = RunConfig(tmp_path, eval_frequency=3, patience=3)
    result = train(shards, HPARAMS, VOCAB, config, lambda model: {"loss": 9.5})
    assert (result.step, result.stopped_by) == (6, "early stopping")


def test_an_evaluation_that_is_made_up_for_fails_as_any(shards: list[Path], tmp_path: Path) -> None:
    def evaluate(model: object) -> Scores:
        raise tf.errors.ResourceExhaustedError(None, None, "OOM")

    killed_while_evaluating(shards, tmp_path, 6)
    with pytest.raises(T2TError, match="out of memory: lower batch_size"):
        train(shards, HPARAMS, VOCAB, RunConfig(tmp_path, eval_frequency=3), evaluate)


def test_nothing_left_to_do(shards: list[Path], copy: Path) -> None:
    with pytest.raises(T2TError, match="at step 8 already"):
        train(shards, HPARAMS, VOCAB, RunConfig(copy))
    beyond, config = HPARAMS.replace(train_steps=7), RunConfig(copy, eval_frequency=8)
    with pytest.raises(T2TError, match="at step 8 already, and train_steps is 7"):
        train(shards, beyond, VOCAB, config, lambda model: {"loss": 1.0})


def test_another_model_in_output_dir(shards: list[Path], copy: Path) -> None:
    with pytest.raises(
        T2TError, match=r"another model: transformer/target_embedding/embeddings is \(20, 32\)"
    ):
        train(shards, HPARAMS.replace(train_steps=9), VOCAB + 1, RunConfig(copy))


def test_a_damaged_shard_is_named(shards: list[Path], tmp_path: Path) -> None:
    damaged = tmp_path / shards[0].name
    damaged.write_bytes(shards[0].read_bytes()[:-7])
    with pytest.raises(T2TError, match=damaged.name):
        train([damaged], HPARAMS, VOCAB, RunConfig(tmp_path / "out"))


def test_what_was_learned_before_an_error_is_saved(shards: list[Path], tmp_path: Path) -> None:
    def on_event(event: object) -> None:
        if isinstance(event, StepEvent) and event.step == 3:
            raise T2TError("a shard is damaged")

    with pytest.raises(T2TError, match="a shard is damaged"):
        train(shards, HPARAMS, VOCAB, RunConfig(tmp_path, log_steps=1), on_event=on_event)
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [3]


def test_losses_that_are_no_numbers_end_training_and_are_not_saved(
    shards: list[Path], tmp_path: Path
) -> None:
    train(shards, HPARAMS.replace(train_steps=2), VOCAB, RunConfig(tmp_path))
    events: list = []
    wild = HPARAMS.replace(train_steps=50, learning_rate_constant=1e30)
    with pytest.raises(
        T2TError, match=r"update \d+: its loss is (nan|inf), 4 times in a row; .*step 2\) is intact"
    ):
        train(shards, wild, VOCAB, RunConfig(tmp_path, max_nonfinite_steps=4), on_event=events.append)
    notes = [n.text for n in events if isinstance(n, NoteEvent)]
    assert len(notes) == 3
    assert "skipped (3 in a row, 3 in all)" in notes[-1]
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [2]


def test_a_refused_training_writes_nothing(shards: list[Path], copy: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    with pytest.raises(T2TError):
        train(shards, HPARAMS.replace(num_heads=4, train_steps=99), VOCAB, RunConfig(copy))
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before


def test_other_dropout_may_follow(shards: list[Path], tmp_path: Path) -> None:
    """Random states come and go with dropout; they are no part of the model."""
    for step, rate in ((2, 0.1), (4, 0.0), (6, 0.2)):
        hparams = HPARAMS.replace(train_steps=step, layer_prepostprocess_dropout=rate)
        assert train(shards, hparams, VOCAB, RunConfig(tmp_path)).step == step


def test_it_runs_in_a_thread(shards: list[Path], tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(train, shards, HPARAMS, VOCAB, RunConfig(tmp_path)).result().step == 8


def test_no_evaluation_but_the_last(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_frequency=0, save_seconds=0, log_steps=0)
    train(shards, HPARAMS, VOCAB, config, lambda model: {"loss": 1.0})
    assert [row["step"] for row in read_curve(tmp_path, DEV)] == [8]
    assert [row["step"] for row in read_curve(tmp_path, TRAIN)] == [1, 8]
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [8]


def damage_last(folder: Path) -> Path:
    path = checkpoints.list_checkpoints(folder)[-1].path
    path.write_bytes(path.read_bytes()[:-100])
    return path


def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_it_used(
    shards: list[Path], whole: tuple[Path, Result], tmp_path: Path
) -> None:
    events: list = []
    config = RunConfig(tmp_path, eval_frequency=3)
    train(shards, HPARAMS.replace(train_steps=6), VOCAB, config)
    damaged = damage_last(config.output_dir)
    content = damaged.read_bytes()
    train(shards, HPARAMS, VOCAB, config, on_event=events.append)
    notes = [n.text for n in events if isinstance(n, NoteEvent)]
    assert len(notes) == 1
    assert f"{damaged}: damaged checkpoint" in notes[0]
    assert "renamed to model.ckpt-6.npz.damaged" in notes[0]
    assert damaged.with_name("model.ckpt-6.npz.damaged").read_bytes() == content
    assert [c.step for c in checkpoints.list_checkpoints(config.output_dir)] == [3, 6, 8]
    expected, found = final_arrays(whole[0]), final_arrays(config.output_dir)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_no_whole_checkpoint_is_said_once(shards: list[Path], copy: Path) -> None:
    damaged = damage_last(copy)
    longer = HPARAMS.replace(train_steps=9)
    with pytest.raises(T2TError, match=r"no checkpoint is valid.*put a copy of one back, or start"):
        train(shards, longer, VOCAB, RunConfig(copy))
    assert damaged.with_name(f"{damaged.name}.damaged").exists()
    assert train(shards, longer, VOCAB, RunConfig(copy)).seen.seconds < 60


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Files end at `size` bytes, as on a disk that is full then."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_the_checkpoints_that_are_there(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_frequency=2, keep_checkpoints=2)
    train(shards, HPARAMS.replace(train_steps=4), VOCAB, config)
    before = final_arrays(tmp_path)
    size = checkpoints.list_checkpoints(tmp_path)[-1].path.stat().st_size
    with (
        largest_file(size // 2),
        pytest.raises(T2TError, match=r"make room, or give a lower --keep_") as error,
    ):
        train(shards, HPARAMS, VOCAB, config)
    assert "cannot write checkpoint" in str(error.value)
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [2, 4]
    assert not list(tmp_path.glob(".model*"))
    for name, array in final_arrays(tmp_path).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    assert train(shards, HPARAMS, VOCAB, config).step == 8


def test_bfloat16_learns_too(shards: list[Path], tmp_path: Path) -> None:
    events: list = []
    hparams = HPARAMS.replace(train_steps=500, layer_prepostprocess_dropout=0.0, label_smoothing=0.0)
    config = RunConfig(tmp_path, precision="mixed_bfloat16", log_steps=50)
    train(shards, hparams, VOCAB, config, on_event=events.append)
    assert [n.loss for n in events if isinstance(n, StepEvent)][-1] < 0.8
    assert {a.dtype.name for n, a in final_arrays(tmp_path).items() if "kernel" in n} == {"float32"}


def test_ctrl_c_saves_and_stops(shards: list[Path], tmp_path: Path) -> None:
    began: list[float] = []

    def on_event(event: object) -> None:
        if isinstance(event, StepEvent) and event.step == 3:
            began.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    config = RunConfig(tmp_path, log_steps=1)
    result = train(shards, HPARAMS.replace(train_steps=100_000), VOCAB, config, on_event=on_event)
    assert time.monotonic() - began[0] < 30
    assert result.stopped_by == "SIGINT"
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [result.step]


@pytest.mark.slow
def test_sigterm_saves_and_stops(shards: list[Path], tmp_path: Path) -> None:
    """From another process, at any time."""
    process = start(tmp_path / "run", shards, HPARAMS.replace(train_steps=100_000), 1, "default")
    assert process.stdout is not None
    while not process.stdout.readline().startswith("step 3"):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    outcome = json.loads(process.communicate(timeout=60)[0].splitlines()[-1])
    assert time.monotonic() - began < 30
    assert outcome["stopped_by"] == "SIGTERM"
    found = checkpoints.list_checkpoints(tmp_path / "run" / "out")
    assert [c.step for c in found] == [outcome["step"]]


def test_two_trainers_in_one_output_dir(shards: list[Path], tmp_path: Path) -> None:
    """The second is refused before it reads or renames anything; the first goes on."""
    refusals: list[str] = []

    def on_event(event: object) -> None:
        if isinstance(event, SavedEvent):
            with pytest.raises(T2TError) as refused:
                train(shards, HPARAMS.replace(train_steps=9), VOCAB, RunConfig(tmp_path))
            refusals.append(str(refused.value))

    assert train(shards, HPARAMS, VOCAB, RunConfig(tmp_path, eval_frequency=4), on_event=on_event).step == 8
    assert len(refusals) == 2
    assert f"{tmp_path}: another t2t-trainer is at work there" in refusals[0]
