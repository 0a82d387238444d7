"""Interrupted trainings: errors, corrupt files, a full disk, signals, a second trainer."""

from __future__ import annotations

import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from t2t_revival import RunConfig, T2TError
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.training.events import NoteEvent, SavedEvent, StepEvent
from tests.support.copy_shards import HPARAMS, VOCAB, assert_same
from tests.support.copy_task import final_arrays, train

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]


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


def damage_last(folder: Path) -> Path:
    path = checkpoints.list_checkpoints(folder)[-1].path
    path.write_bytes(path.read_bytes()[:-100])
    return path


def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_it_used(
    shards: list[Path], tmp_path: Path
) -> None:
    whole, events = RunConfig(tmp_path / "whole"), []
    train(shards, HPARAMS, VOCAB, whole)
    config = RunConfig(tmp_path / "parts", eval_frequency=3)
    train(shards, HPARAMS.replace(train_steps=6), VOCAB, config)
    damaged = damage_last(config.output_dir)
    content = damaged.read_bytes()
    train(shards, HPARAMS, VOCAB, config, on_event=events.append)
    notes = [n.text for n in events if isinstance(n, NoteEvent)]
    assert len(notes) == 1
    assert f"{damaged}: corrupt checkpoint" in notes[0]
    assert "renamed to model.ckpt-6.npz.damaged" in notes[0]
    assert damaged.with_name("model.ckpt-6.npz.damaged").read_bytes() == content
    assert [c.step for c in checkpoints.list_checkpoints(config.output_dir)] == [3, 6, 8]
    assert_same(final_arrays(config.output_dir), final_arrays(whole.output_dir))


def test_no_whole_checkpoint_is_said_once(shards: list[Path], tmp_path: Path) -> None:
    train(shards, HPARAMS, VOCAB, RunConfig(tmp_path))
    damaged = damage_last(tmp_path)
    longer = HPARAMS.replace(train_steps=9)
    with pytest.raises(T2TError, match=r"all checkpoints are corrupt.*restore a copy of one, or start"):
        train(shards, longer, VOCAB, RunConfig(tmp_path))
    assert damaged.with_name(f"{damaged.name}.damaged").exists()
    assert train(shards, longer, VOCAB, RunConfig(tmp_path)).seen.seconds < 60


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Limits files to `size` bytes, as on a disk that is full then."""
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
    assert_same(final_arrays(tmp_path), before)
    assert train(shards, HPARAMS, VOCAB, config).step == 8


def test_too_little_space_is_said_in_sizes_that_fit(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1234))
    with pytest.raises(T2TError, match=r": 1.2 kB are free, but .* need \d+ kB: free some space"):
        train(shards, HPARAMS, VOCAB, RunConfig(tmp_path))


@pytest.fixture
def hangups() -> Iterator[None]:
    """Handles SIGHUP as without nohup, under which tests and what they train ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def train_until(shards: list[Path], out: Path, *signals: signal.Signals) -> tuple[int, str | None]:
    """Sends signals to this process after update 3; test_beside_a_training sends them to another."""

    def on_event(event: object) -> None:
        if isinstance(event, StepEvent) and event.step == 3:
            for number in signals:
                signal.raise_signal(number)

    result = train(shards, HPARAMS, VOCAB, RunConfig(out, log_steps=1), on_event=on_event)
    return result.step, result.stopped_by


GONE = (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGHUP)  # of a kernel, shell, session manager


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGHUP,), GONE])
def test_a_signal_saves_and_stops(
    shards: list[Path], tmp_path: Path, hangups: None, signals: tuple[signal.Signals, ...]
) -> None:
    assert train_until(shards, tmp_path, *signals) == (3, signals[-2:][0].name)
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [3]


def test_a_second_signal_ends_at_once(shards: list[Path], tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        train_until(shards, tmp_path, signal.SIGTERM, signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before
    assert not checkpoints.list_checkpoints(tmp_path)


def test_a_hangup_that_is_ignored_is_no_reason_to_stop(
    shards: list[Path], tmp_path: Path, hangups: None
) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert train_until(shards, tmp_path, signal.SIGHUP) == (8, None)


def test_a_signal_before_early_stopping_is_the_reason(shards: list[Path], tmp_path: Path) -> None:
    evaluations = count(1)

    def evaluate(model: object) -> dict[str, float]:
        if next(evaluations) == 6:
            signal.raise_signal(signal.SIGINT)
        return {"loss": 1.0}

    config = RunConfig(tmp_path, eval_frequency=1, keep_best=0, patience=5)
    result = train(shards, HPARAMS, VOCAB, config, evaluate)
    assert (result.step, result.stopped_by) == (6, "SIGINT")


def test_two_trainers_in_one_output_dir(shards: list[Path], tmp_path: Path) -> None:
    """The second is rejected before it reads or renames anything; the first continues."""
    refusals: list[str] = []

    def on_event(event: object) -> None:
        if isinstance(event, SavedEvent):
            with pytest.raises(T2TError) as refused:
                train(shards, HPARAMS.replace(train_steps=9), VOCAB, RunConfig(tmp_path))
            refusals.append(str(refused.value))

    assert train(shards, HPARAMS, VOCAB, RunConfig(tmp_path, eval_frequency=4), on_event=on_event).step == 8
    assert len(refusals) == 2
    assert f"{tmp_path} is in use by another t2t-trainer" in refusals[0]
