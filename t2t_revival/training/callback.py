"""Counting, reports, checkpoints, evaluations and the end of a training, beside its steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from t2t_revival.curve_files import DEV, SMOOTHED, TRAIN
from t2t_revival.errors import T2TError
from t2t_revival.training.checkpoint_saver import CheckpointSaver
from t2t_revival.training.curves import Curves
from t2t_revival.training.engines.engine import Engine, StepLogs
from t2t_revival.training.events import EvaluatedEvent, NoteEvent, OnEvent, Scores, StepEvent
from t2t_revival.training.lora import merged
from t2t_revival.training.run_config import RunConfig
from t2t_revival.training.state import TrainingProgress
from t2t_revival.training.stopping import Stopping

MAX_PENDING = 1000  # micro-batches that are started and not yet counted
MAX_PENDING_OF_SEVERAL = 20  # updates, of workers that stop together

Evaluate = Callable[[Any], Scores]


class DivergedError(T2TError):
    """Too many updates in a row were skipped: the weights are not worth saving."""


class Losses(NamedTuple):
    """Losses of a micro-batch per target token, in nats: the minimised one, and the plain cross-entropy."""

    smoothed: float
    plain: float


@dataclass
class Reporter:
    """Reports updates and evaluations as events, and as points of the curves."""

    progress: TrainingProgress
    curves: Curves | None  # of several workers, the chief alone has curves
    on_event: OnEvent

    def __post_init__(self) -> None:
        self._losses: list[Losses] = []  # of the micro-batches since the last report
        self._tokens = 0  # target tokens of this session until the last report
        self._began = self._first_update_ended = time.monotonic()

    def add(self, losses: list[Losses]) -> None:
        """Adds the losses of an update's micro-batches."""
        self._losses += losses

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Excludes the time that the block takes from tokens per second."""
        began = time.monotonic()
        yield
        self._began += time.monotonic() - began

    def report_updates(self, learning_rate: float) -> None:
        """Reports losses and speed of the updates since the last report; raises as `Curves.add`."""
        progress = self.progress
        tokens = progress.state.seen.target_tokens - progress.start.seen.target_tokens
        smoothed, plain = np.mean(self._losses, axis=0).tolist()
        speed = (tokens - self._tokens) / max(time.monotonic() - self._began, 1e-9)
        scores = {
            "loss": plain,
            SMOOTHED: smoothed,
            "learning_rate": learning_rate,
            "tokens_per_second": speed,
        }
        seconds_left = None if progress.is_first else self._seconds_left()
        if self.curves:
            self.curves.add(TRAIN, progress.step, progress.state.seen, scores)
        self.on_event(StepEvent(progress.step, progress.train_steps, **scores, seconds_left=seconds_left))
        self._losses, self._tokens, self._began = [], tokens, time.monotonic()
        if progress.is_first:
            self._first_update_ended = self._began

    def report_scores(self, scores: Scores, seconds: float) -> None:
        """Reports an evaluation; raises as `Curves.add`."""
        if self.curves:
            self.curves.add(DEV, self.progress.step, self.progress.state.seen, scores)
        self.on_event(EvaluatedEvent(self.progress.step, scores, seconds))

    def _seconds_left(self) -> float:
        """An estimate by the pace since the first update."""
        progress = self.progress
        pace = (time.monotonic() - self._first_update_ended) / (progress.step - progress.start.step - 1)
        return (progress.train_steps - progress.step) * pace


class TrainingCallback:
    """Counts updates in `progress`; reports, saves, evaluates and stops after each, if it is due.

    Results of steps stay on the device until something is due, so that devices do not wait for this process.

    Args:
        config: of the run.
        progress: counts.
        reporter: gets losses and scores.
        saver: saves checkpoints.
        evaluate: called with the model; returns its dev scores. `None` leaves evaluations out.
        stopping: says when to stop.
        engine: fetches the results of steps.

    Attributes:
        scores: of the last evaluation; empty before the first.
        is_over: whether training is to stop.
    """

    def __init__(
        self,
        config: RunConfig,
        progress: TrainingProgress,
        reporter: Reporter,
        saver: CheckpointSaver,
        evaluate: Evaluate | None,
        stopping: Stopping,
        engine: Engine,
    ) -> None:
        self._config = config
        self._progress = progress
        self._reporter = reporter
        self._saver = saver
        self._evaluate = evaluate
        self._stopping = stopping
        self._engine = engine
        self._pending: list[StepLogs] = []  # of micro-batches whose results were not yet fetched
        scale = saver.model.optimizer.loss_scale
        self._loss_scale = scale.scale if scale else 1.0  # after the last update
        self._nonfinite_in_a_row = 0
        self.scores: Scores = {}
        self.is_over = False

    def evaluate_first(self) -> bool:
        """Evaluates the checkpoint of an earlier session, and returns whether more is to be trained."""
        self._evaluate_model()
        self.is_over = self._decide_to_stop()
        return not self.is_over

    def on_step(self, logs: StepLogs) -> None:
        """Must be called after each micro-batch; raises as `fetch`."""
        self._pending.append(logs)
        updates, rest = divmod(len(self._pending), self._progress.accumulate)
        if not rest and self._is_due(updates):
            self.fetch()
            self.is_over = self._decide_to_stop()

    def fetch(self) -> None:
        """Waits for the updates that were started, and does what is due after the last.

        Raises:
            DivergedError: as `count`.
            T2TError: something cannot be written.
        """
        is_done = self.count()
        self._saver.report_written()
        if is_done:
            self._after_update()

    def count(self) -> bool:
        """Counts the updates that were started, and returns whether the last of them was done.

        Raises:
            DivergedError: too many in a row were skipped.
        """
        pending, self._pending = self._pending, []
        logs, size = self._engine.fetch(pending), self._progress.accumulate
        is_done = False
        for start in range(0, len(logs) - len(logs) % size, size):
            is_done = self._count(logs[start : start + size])
        return is_done

    def _is_due(self, updates: int) -> bool:
        """Returns whether to wait for updates that were started: all workers decide the same."""
        progress, config = self._progress, self._config
        latest = progress.step + updates  # if none was skipped
        if progress.step == progress.start.step or updates * progress.accumulate >= MAX_PENDING:
            return True
        if progress.is_every(config.log_steps, latest) or progress.is_every(config.eval_frequency, latest):
            return True
        if self._engine.several:
            return updates >= MAX_PENDING_OF_SEVERAL
        return self._saver.is_due() or self._stopping.has_reason

    def _count(self, logs: list[StepLogs]) -> bool:
        """Counts an update by its micro-batches' results, and returns whether it was done."""
        losses = [Losses(one.loss, one.cross_entropy) for one in logs]
        before, self._loss_scale = self._loss_scale, logs[-1].loss_scale
        if logs[-1].updates == self._progress.step:
            self._after_skipped_update([loss.smoothed for loss in losses], self._loss_scale < before)
            return False
        self._reporter.add(losses)
        self._progress.step += 1
        self._nonfinite_in_a_row = 0
        return True

    def _after_update(self) -> None:
        progress, config = self._progress, self._config
        if progress.is_first or progress.is_every(config.log_steps):
            self._reporter.report_updates(float(self._saver.model.optimizer.learning_rate_at(progress.step)))
        with self._reporter.pause():
            is_evaluated = progress.is_every(config.eval_frequency)
            if is_evaluated or self._engine.all_reduce_max(self._saver.is_due()):
                self._engine.synchronize()
                self._saver.save()
            if is_evaluated:
                self._evaluate_model()

    def _after_skipped_update(self, losses: list[float], has_lower_scale: bool) -> None:
        """Counts an update that the optimizer skipped; its data is consumed all the same.

        Raises:
            DivergedError: it is the last of too many in a row, and no overflow of float16.
        """
        progress, number = self._progress, self._progress.step + 1
        nonfinite = next((loss for loss in losses if not math.isfinite(loss)), None)
        if nonfinite is None and has_lower_scale:  # no fault of the training
            progress.overflows += 1
            fault = f"update {number} skipped: scaled gradients overflow float16"
            self._reporter.on_event(NoteEvent(f"{fault}; loss scale lowered to {self._loss_scale:g}"))
            return
        progress.skipped_updates += 1
        self._nonfinite_in_a_row += 1
        in_a_row = self._nonfinite_in_a_row
        fault = "gradients are not finite" if nonfinite is None else f"loss is {nonfinite}"
        if in_a_row == self._config.max_nonfinite_steps:
            last = self._saver.step
            kept = f"the last checkpoint (step {last}) is intact" if last else "no checkpoint was saved yet"
            raise DivergedError(
                f"training diverged at update {number}: {fault}, {in_a_row} times in a row; {kept}: try a "
                "lower learning_rate_constant or a longer warm-up"
            )
        counts = f"{in_a_row} in a row, {progress.skipped_updates} in all"
        self._reporter.on_event(NoteEvent(f"update {number} skipped: {fault} ({counts})"))

    def _evaluate_model(self) -> None:
        """Measures and reports the scores of the last update; keeps its checkpoint if it is one of the best.

        Raises:
            T2TError: they cannot be measured, or written.
        """
        if not self._evaluate:
            return
        began, model, step = time.monotonic(), self._saver.model, self._progress.step
        with model.optimizer.averaged_weights(), merged(model.adapters):
            self.scores = self._evaluate(model)
        seconds = time.monotonic() - began
        event = self._saver.keep_best(step, self.scores)
        self._reporter.report_scores(self.scores, seconds)
        if event:
            self._reporter.on_event(event)
        self._stopping.on_scores(step, self.scores)

    def _decide_to_stop(self) -> bool:
        # All workers ask `stopping` at the same updates: the answer is a collective operation.
        return self._stopping.agree_to_stop() or self._progress.is_done
