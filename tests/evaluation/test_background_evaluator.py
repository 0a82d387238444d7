"""Dev scores that another process measures: those of `t2t-eval`, whatever happens to the process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from t2t_revival import Experiment, RunConfig, T2TError, registry
from t2t_revival.evaluation.background_evaluator import BackgroundEvaluator
from t2t_revival.evaluation.split_scores import CheckpointScores
from t2t_revival.problems.problem import DEV
from t2t_revival.training.checkpoints.directory import list_checkpoints
from t2t_revival.training.curve_files import read_curve
from t2t_revival.training.evaluator import Scored
from t2t_revival.training.events import NoteEvent
from t2t_revival.training.state import Seen
from tests.contract.trainings import HPARAMS, SUBTOKENS, write_corpora

pytestmark = pytest.mark.slow

SENTENCES, SEEN, SECONDS = 12, Seen(target_tokens=5), 600.0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of 4 updates whose dev scores another process measured."""
    folder = tmp_path_factory.mktemp("run")
    write_corpora(folder)
    vocabulary = folder / SUBTOKENS
    problem = registry.problem("translate_ende", data_source=str(folder / "news"), vocab_file=vocabulary)
    problem.generate_data(folder / "data")
    hparams = registry.hparams("tiny").replace(**HPARAMS, train_steps=4)
    config = RunConfig(folder / "out", eval_frequency=2, eval_async=True)
    Experiment(problem, hparams, "tiny", folder / "data", config, SENTENCES).run()
    return folder


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def evaluator(run: Path, notes: list[str]) -> Iterator[BackgroundEvaluator]:
    def on_event(event: object) -> None:
        assert isinstance(event, NoteEvent)
        notes.append(event.text)

    found = BackgroundEvaluator(
        run / "out", registry.problem("translate_ende"), run / "data", SENTENCES, on_event
    )
    yield found
    found.close()


def ask(evaluator: BackgroundEvaluator, path: Path, step: int) -> None:
    evaluator.ask(None, path, step, SEEN)  # type: ignore[arg-type]  the model is not used


def wait(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + SECONDS
    while not (result := found()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result


def kill(evaluator: BackgroundEvaluator, *signals: signal.Signals) -> Any:
    """Sends signals to the process that measures; returns it."""
    process = evaluator._process
    assert process
    assert process.pid
    for number in signals:
        os.kill(process.pid, number)
    return process


def test_scores_are_those_of_the_checkpoints(run: Path) -> None:
    expected = CheckpointScores(run / "out", registry.problem("translate_ende"), DEV, run / "data", SENTENCES)
    rows = {row["step"]: row for row in read_curve(run / "out", DEV)}
    checkpoints = list_checkpoints(run / "out")
    assert checkpoints[-1].step == 4
    for checkpoint in checkpoints:
        if checkpoint.step not in rows:  # another took its turn
            assert checkpoint.step == 2
            continue
        scores, _ = expected(checkpoint.path)
        for name, value in scores.items():
            assert rows[checkpoint.step][name] == pytest.approx(value, rel=1e-4), name


@pytest.mark.nightly
def test_the_newest_of_those_that_wait_is_next(
    run: Path, evaluator: BackgroundEvaluator, notes: list[str]
) -> None:
    path = list_checkpoints(run / "out")[-1].path
    for step in (1, 2, 3):
        ask(evaluator, path, step)
    assert list(evaluator.awaited) == [1, 3]
    assert notes == ["step 2  dev scores left out: those of step 1 take long"]
    scored: list[Scored] = []
    while evaluator.awaited:
        scored += wait(evaluator.take)
    assert [(one.step, one.seen) for one in scored] == [(1, SEEN), (3, SEEN)]
    assert scored[0].scores == scored[1].scores
    assert not evaluator.has_news()


@pytest.mark.nightly
def test_a_killed_process_is_said_and_replaced(
    run: Path, evaluator: BackgroundEvaluator, notes: list[str]
) -> None:
    path = list_checkpoints(run / "out")[-1].path
    ask(evaluator, path, 4)
    kill(evaluator, signal.SIGKILL)
    wait(evaluator.has_news)
    assert evaluator.take() == []
    (note,) = notes
    assert note.startswith("warning: step 4 has no dev scores: ")
    assert note.endswith("exit status -9 (out of memory?)")
    ask(evaluator, path, 4)
    (scored,) = wait(evaluator.take)
    assert scored.scores["loss"] > 0


@pytest.mark.nightly
def test_a_process_that_dies_while_it_is_idle_is_replaced(run: Path, evaluator: BackgroundEvaluator) -> None:
    path = list_checkpoints(run / "out")[-1].path
    ask(evaluator, path, 3)
    wait(evaluator.take)
    process = kill(evaluator, signal.SIGTERM, signal.SIGINT)  # as to all processes of a training
    process.join(1)
    assert process.is_alive()
    kill(evaluator, signal.SIGKILL)
    process.join()
    assert not evaluator.has_news()
    assert evaluator.take() == []
    ask(evaluator, path, 4)
    (scored,) = wait(evaluator.take)
    assert scored.step == 4


def test_a_corrupt_checkpoint_is_named_and_the_next_is_scored(
    run: Path, evaluator: BackgroundEvaluator, tmp_path: Path, notes: list[str]
) -> None:
    good, path = list_checkpoints(run / "out")[-1].path, tmp_path / "model.ckpt-3.npz"
    path.write_bytes(good.read_bytes()[:-100])
    ask(evaluator, path, 3)
    ask(evaluator, good, 4)
    wait(evaluator.has_news)
    assert evaluator.take() == []
    (note,) = notes
    assert note.startswith(f"warning: step 3 has no dev scores: {path}")
    (scored,) = wait(evaluator.take)
    assert scored.step == 4


@pytest.mark.nightly
def test_what_no_checkpoint_can_mend_is_raised(run: Path, tmp_path: Path) -> None:
    no_data = tmp_path / "data"
    own = BackgroundEvaluator(run / "out", registry.problem("translate_ende"), no_data, SENTENCES, print)  # type: ignore[arg-type]
    ask(own, list_checkpoints(run / "out")[-1].path, 4)
    wait(own.has_news)
    with pytest.raises(T2TError, match=str(no_data)):
        own.take()
    own.close()
