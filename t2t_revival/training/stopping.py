"""Reasons to stop a training before its last update: signals and early stopping."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from t2t_revival.curve_files import lower_is_better
from t2t_revival.errors import T2TError
from t2t_revival.training.engines.engine import Engine
from t2t_revival.training.events import Scores
from t2t_revival.training.run_config import RunConfig
from t2t_revival.utils.signals import ending_signals, handling

EARLY = "early stopping"
REASONS = (None, "SIGHUP", "SIGINT", "SIGTERM", EARLY)  # the later one wins where workers have different ones


class EarlyStopping:
    """Early stopping: stops when a score has not become better for `patience` updates.

    Args:
        config: reads `patience`, `patience_score` and `min_delta`.
        history: earlier evaluations on the same data, each with its "step" and the score.
    """

    def __init__(self, config: RunConfig, history: list[Scores]) -> None:
        self._config = config
        self._best, self._best_step = math.inf, 0
        for scores in history:
            self.should_stop(int(scores["step"]), scores)

    def should_stop(self, step: int, scores: Scores) -> bool:
        """Decides whether to stop after the evaluation of `step`.

        Raises:
            T2TError: the score that is watched is not measured.
        """
        if not self._config.patience:
            return False
        name = self._config.patience_score
        if name not in scores:
            raise T2TError(
                f"--eval_early_stopping_metric={name} is not measured here: give one of {', '.join(scores)}"
            )
        score = scores[name] if lower_is_better(name) else -scores[name]
        if score < self._best - self._config.min_delta:
            self._best, self._best_step = score, step
        return step - self._best_step >= self._config.patience


class Stopping:
    """The reason why all workers of a training stop before its last update, if there is one.

    Args:
        early_stopping: called with the scores of each evaluation.
        engine: its processes stop together, whichever of them has a reason.

    Attributes:
        reason: one of `REASONS`; `None` while training continues.
    """

    def __init__(self, early_stopping: EarlyStopping, engine: Engine) -> None:
        self.reason: str | None = None
        self._own_reason: str | None = None  # of this process; a signal sets it at any time
        self._early_stopping = early_stopping
        self._engine = engine

    @property
    def has_reason(self) -> bool:
        """True if this process has a reason to stop."""
        return self._own_reason is not None

    @contextmanager
    def handle_signals(self) -> Iterator[None]:
        """Handles SIGINT, SIGTERM and SIGHUP: the first stops after this update, a second one at once.

        When a terminal is gone, shell, kernel and session manager each send a signal: a second SIGHUP has no
        effect, nor has the first other signal after it. See `handling`.
        """
        with handling(dict.fromkeys(ending_signals(), self._on_signal)):
            yield

    def _on_signal(self, number: int, frame: Any) -> None:
        reason = signal.Signals(number).name
        if self._own_reason in ("SIGINT", "SIGTERM"):
            if reason == "SIGHUP":
                return
            raise KeyboardInterrupt
        self._own_reason = reason

    def on_scores(self, step: int, scores: Scores) -> None:
        """Decides on early stopping after an evaluation; a signal that came before it takes precedence.

        Raises:
            T2TError: as `EarlyStopping.should_stop`.
        """
        if self._early_stopping.should_stop(step, scores) and self._own_reason is None:
            self._own_reason = EARLY

    def agree_to_stop(self) -> bool:
        """Decides whether to stop, if any worker has a reason; all must call it after the same updates."""
        self.reason = REASONS[self._engine.all_reduce_max(REASONS.index(self._own_reason))]
        return self.reason is not None
