"""Training as `t2t-trainer` runs it: learning, resumption, accumulation, evaluation and stopping."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import RunConfig, T2TError
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import trained_on, weights_of
from t2t_revival.curve_files import DEV, TRAIN, read_curve
from t2t_revival.training import monitor
from t2t_revival.training.events import EvaluatedEvent, SavedEvent, Scores, StepEvent
from t2t_revival.training.state import Fingerprints
from tests.support.copy_shards import HPARAMS, VOCAB
from tests.support.copy_task import train

PLAIN = HPARAMS.replace(layer_prepostprocess_dropout=0.0, label_smoothing=0.0)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]


def test_a_run_goes_on_with_another_number_of_micro_batches(shards: list[Path], tmp_path: Path) -> None:
    """The learning rate follows the updates, as on a machine with more devices."""
    events: list = []
    first = HPARAMS.replace(effective_batch_size=1024, train_steps=3)
    train(shards, first, VOCAB, RunConfig(tmp_path, log_steps=1), on_event=events.append)
    for accumulate in (1, 4):
        hparams = first.replace(effective_batch_size=256 * accumulate, train_steps=events[-2].step + 2)
        train(shards, hparams, VOCAB, RunConfig(tmp_path, log_steps=1), on_event=events.append)
    rates = [n.learning_rate for n in events if isinstance(n, StepEvent)]
    expected = [32**-0.5 * step * 40**-1.5 for step in range(1, 8)]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


def test_a_packed_run_goes_on_to_the_bit(shards: list[Path], tmp_path: Path) -> None:
    for folder, steps in (("whole", 6), ("parts", 3), ("parts", 6)):
        config = RunConfig(tmp_path / folder, packed=True)
        train(shards, HPARAMS.replace(train_steps=steps), VOCAB, config)
    whole, parts = (checkpoints.list_checkpoints(tmp_path / folder)[-1] for folder in ("whole", "parts"))
    assert (whole.step, weights_of(whole.path)) == (parts.step, weights_of(parts.path))
    assert len(checkpoints.list_checkpoints(tmp_path / "parts")) == 2


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


def test_early_stopping_counts_scores_on_the_dev_data_of_now(shards: list[Path], tmp_path: Path) -> None:
    config = RunConfig(tmp_path, eval_frequency=1, patience=3)

    def stopped(train_steps: int, first: float, data: str) -> tuple[int, str | None]:
        """Trains with losses that improve from `first` on."""
        losses = (first - n / 10 for n in count())
        hparams, fingerprints = HPARAMS.replace(train_steps=train_steps), Fingerprints("train", data)
        result = train(
            shards, hparams, VOCAB, config, lambda _: {"loss": next(losses)}, fingerprints=fingerprints
        )
        return result.step, result.stopped_by

    assert stopped(2, 1.0, "a") == (2, None)
    assert stopped(7, 5.0, "b") == (7, None), "0.9 at step 2 is of other data"
    assert stopped(9, 6.0, "a") == (8, "early stopping"), "0.9 at step 2 is of the same data"


def test_other_training_data_begins_at_its_first_batch(shards: list[Path], tmp_path: Path) -> None:
    def position(steps: int, data: str) -> dict[str, Any]:
        """Trains up to a step, and returns the place in the data of the next batch."""
        hparams = HPARAMS.replace(train_steps=steps)
        train(shards, hparams, VOCAB, RunConfig(tmp_path), fingerprints=Fingerprints(data))
        path = tmp_path / f"model.ckpt-{steps}.npz"
        assert trained_on(path) == data
        return checkpoints.load(path)[1]["position"]

    places = [position(*step) for step in ((3, "a"), (4, "a"), (5, "b"), (6, "b"), (7, ""))]
    assert [place["batch"] for place in places] == [3, 4, 1, 2, 3]
    assert {place["epoch"] for place in places} == {0}


def killed_while_evaluating(shards: list[Path], output_dir: Path, step: int, **config: Any) -> None:
    """Trains until the evaluation of that step, which is interrupted."""
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
    with pytest.raises(T2TError, match="already at step 8"):
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


def test_other_dropout_may_follow(shards: list[Path], tmp_path: Path) -> None:
    """Random states come and go with dropout; they are no part of the model."""
    for step, hparams in ((2, HPARAMS), (4, PLAIN), (6, HPARAMS)):
        config = RunConfig(tmp_path)
        assert train(shards, hparams.replace(train_steps=step), VOCAB, config).step == step


def test_it_runs_in_a_thread(shards: list[Path], tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(train, shards, HPARAMS, VOCAB, RunConfig(tmp_path)).result().step == 8


@pytest.mark.parametrize(("log_steps", "reported"), [(0, [1, 8]), (100, [*range(1, 9)])])
def test_no_evaluation_but_the_last(
    log_steps: int, reported: list[int], shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each update takes a minute here, after which it is reported, if any are."""
    monkeypatch.setattr(monitor, "REPORT_SECONDS", 0.0)
    config = RunConfig(tmp_path, eval_frequency=0, save_seconds=0, log_steps=log_steps)
    train(shards, HPARAMS, VOCAB, config, lambda model: {"loss": 1.0})
    assert [row["step"] for row in read_curve(tmp_path, DEV)] == [8]
    assert [row["step"] for row in read_curve(tmp_path, TRAIN)] == reported
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [8]
