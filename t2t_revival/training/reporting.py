"""Reports of a training's progress: events, and points of the training curve."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from t2t_revival.training.curve_files import SMOOTHED, TRAIN
from t2t_revival.training.curves import Curves
from t2t_revival.training.events import OnEvent, StepEvent
from t2t_revival.training.state import TrainingProgress


class Losses(NamedTuple):
    """Losses of a micro-batch per target token, in nats: the minimised one, and the plain cross-entropy."""

    smoothed: float
    plain: float


@dataclass
class StepReporter:
    """Reports losses, speed and learning rate of the updates since its last report."""

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

    def report(self, learning_rate: float) -> None:
        """Reports the updates since the last report.

        Raises:
            T2TError: the curves cannot be written.
        """
        progress, seen = self.progress, self.progress.state.seen
        tokens = seen.target_tokens - progress.start.seen.target_tokens
        smoothed, plain = np.mean(self._losses, axis=0).tolist()
        event = StepEvent(
            step=progress.step,
            train_steps=progress.train_steps,
            loss=plain,
            smoothed_loss=smoothed,
            tokens_per_second=(tokens - self._tokens) / max(time.monotonic() - self._began, 1e-9),
            learning_rate=learning_rate,
            seconds_left=None if progress.is_first else self._seconds_left(),
        )
        if self.curves:
            point = {
                "loss": plain,
                SMOOTHED: smoothed,
                "learning_rate": learning_rate,
                "tokens_per_second": event.tokens_per_second,
            }
            self.curves.add(TRAIN, progress.step, seen, point)
        self.on_event(event)
        self._losses, self._tokens, self._began = [], tokens, time.monotonic()
        if progress.is_first:
            self._first_update_ended = self._began

    def _seconds_left(self) -> float:
        """An estimate by the pace since the first update."""
        progress = self.progress
        pace = (time.monotonic() - self._first_update_ended) / (progress.step - progress.start.step - 1)
        return (progress.train_steps - progress.step) * pace
