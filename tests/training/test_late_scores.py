"""Dev scores that arrive while the training goes on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from t2t_revival import RunConfig, T2TError
from t2t_revival.training.checkpoints import directory as checkpoints
from t2t_revival.training.checkpoints.best import list_best
from t2t_revival.training.curve_files import DEV, TRAIN, read_curve
from t2t_revival.training.evaluator import Evaluator, Scored
from t2t_revival.training.events import EvaluatedEvent, NoteEvent, StepEvent
from t2t_revival.training.model import TrainingTransformer
from t2t_revival.training.state import Seen
from tests.support.copy_shards import HPARAMS, VOCAB
from tests.support.copy_task import train

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]

WAITING = "waiting for the dev scores of step 8"


class LateEvaluator(Evaluator):
    """Has the scores of a checkpoint when it was looked for so many times; their loss is 10 - step.

    Attributes:
        asked: the steps.
    """

    waits = False

    def __init__(self, delay: int, interrupted: bool = False) -> None:
        self.asked: list[int] = []
        self._delay, self._looks, self._interrupted = delay, 0, interrupted
        self._requests: list[tuple[Path, int, Seen]] = []

    @property
    def awaited(self) -> Collection[int]:
        return [step for _, step, _ in self._requests]

    def ask(self, model: TrainingTransformer, path: Path, step: int, seen: Seen) -> None:
        self.asked.append(step)
        self._requests.append((path, step, seen))
        self._looks = 0

    def has_news(self) -> bool:
        if not self._requests:
            return False
        while not self._requests[-1][0].exists():  # it is being written
            time.sleep(0.01)
        self._looks += 1
        return self._looks > self._delay

    def take(self) -> list[Scored]:
        if self._interrupted:
            os.kill(os.getpid(), signal.SIGINT)
            return []
        scored = [Scored(step, seen, {"loss": 10.0 - step}, 1.0) for _, step, seen in self._requests]
        assert all(path.exists() for path, *_ in self._requests), "not removed before it was read"
        self._requests = []
        return scored


def steps(events: list, kind: type) -> list[int]:
    return [event.step for event in events if isinstance(event, kind)]


def test_scores_are_reported_when_they_are_there(shards: list[Path], tmp_path: Path) -> None:
    events: list = []
    config = RunConfig(
        tmp_path, eval_async=True, eval_frequency=3, keep_checkpoints=1, keep_best=2, log_steps=1
    )
    result = train(shards, HPARAMS, VOCAB, config, LateEvaluator(delay=1), events.append)
    assert steps(events, EvaluatedEvent) == [3, 6, 8]
    first = next(place for place, event in enumerate(events) if isinstance(event, EvaluatedEvent))
    assert steps(events[:first], StepEvent)[-1] > 3, "the training had gone on"
    assert [event.text for event in events if isinstance(event, NoteEvent)] == [WAITING]
    assert [checkpoint.step for checkpoint in list_best(tmp_path)] == [8, 6]
    assert result.scores == {"loss": 2.0}
    tokens = {row["step"]: row["target_tokens"] for row in read_curve(tmp_path, TRAIN)}
    assert [(row["step"], row["target_tokens"]) for row in read_curve(tmp_path, DEV)] == [
        (step, tokens[step]) for step in (3, 6, 8)
    ]


def test_checkpoints_stay_until_they_are_scored(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_async=True, eval_frequency=1, keep_checkpoints=1)
    train(shards, HPARAMS, VOCAB, config, LateEvaluator(delay=6))
    assert [row["step"] for row in read_curve(tmp_path, DEV)] == list(range(1, 9))
    assert [checkpoint.step for checkpoint in checkpoints.list_checkpoints(tmp_path)] == [8]


def test_late_scores_may_stop_early(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_async=True, eval_frequency=2, patience=1, min_delta=5.0)
    hparams = HPARAMS.replace(train_steps=100)
    result = train(shards, hparams, VOCAB, config, LateEvaluator(delay=1))
    assert result.stopped_by == "early stopping"
    assert 4 < result.step < 10


def test_scores_after_the_last_update_may_stop_early(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_async=True, eval_frequency=4, patience=4, min_delta=5.0)
    result = train(shards, HPARAMS, VOCAB, config, LateEvaluator(delay=2))
    assert (result.step, result.stopped_by) == (8, "early stopping")


def test_a_corrupt_checkpoint_of_before_is_not_evaluated(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_async=True, eval_frequency=6)
    train(shards, HPARAMS, VOCAB, config, LateEvaluator(delay=1, interrupted=True))
    path = tmp_path / checkpoints.file_name(6)
    path.write_bytes(path.read_bytes()[:-100])
    events: list = []
    resumed = LateEvaluator(delay=0)
    assert train(shards, HPARAMS, VOCAB, config, resumed, events.append).step == 8
    assert resumed.asked == [8]
    notes = [event.text for event in events if isinstance(event, NoteEvent)]
    assert any(note.endswith("not evaluated") and path.name in note for note in notes)


def test_what_an_interruption_cut_short_is_made_up_for(shards: list[Path], tmp_path: Path) -> None:
    """The checkpoint of step 6 is not the newest then, but that of 7."""
    events: list = []
    config = RunConfig(tmp_path, eval_async=True, eval_frequency=6)
    interrupted = LateEvaluator(delay=1, interrupted=True)
    result = train(shards, HPARAMS, VOCAB, config, interrupted, events.append)
    assert (result.step, result.stopped_by) == (7, "SIGINT")
    assert WAITING not in [event.text for event in events if isinstance(event, NoteEvent)]
    assert read_curve(tmp_path, DEV) == []
    resumed = LateEvaluator(delay=0)
    assert train(shards, HPARAMS, VOCAB, config, resumed).step == 8
    assert resumed.asked == [6, 8]
    assert [row["step"] for row in read_curve(tmp_path, DEV)] == [6, 8]
    with pytest.raises(T2TError, match="already at step 8"):
        train(shards, HPARAMS, VOCAB, config, LateEvaluator(delay=0))


@pytest.mark.nightly
def test_an_interruption_ends_the_waiting(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_async=True, eval_frequency=8)
    result = train(shards, HPARAMS, VOCAB, config, LateEvaluator(delay=1, interrupted=True))
    assert result.step == 8
    assert [checkpoint.step for checkpoint in checkpoints.list_checkpoints(tmp_path)] == [8]
    evaluator = LateEvaluator(delay=0)
    train(shards, HPARAMS, VOCAB, config, evaluator)
    assert evaluator.asked == [8]
