"""`Evaluator`: dev scores of a training's checkpoints, measured by its own model."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

from t2t_revival.training.events import Scores
from t2t_revival.training.lora import merged
from t2t_revival.training.model import TrainingTransformer
from t2t_revival.training.state import Seen

Evaluate = Callable[[Any], Scores]


class Scored(NamedTuple):
    """Dev scores of the checkpoint of `step`, before which the training had `seen` so much data."""

    step: int
    seen: Seen
    scores: Scores
    seconds: float  # that it took


class Evaluator:
    """Measures the dev scores of a training's model when they are asked for, while the training waits.

    Args:
        evaluate: called with the model; returns its scores, such as {"loss": 1.2}.

    Attributes:
        waits: whether `ask` returns when they are there.
    """

    waits = True

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._scored: list[Scored] = []

    def ask(self, model: TrainingTransformer, path: Path, step: int, seen: Seen) -> None:
        """Requests the scores of `model` after an update, whose checkpoint is, or will be, at `path`."""
        began = time.monotonic()
        with model.optimizer.averaged_weights(), merged(model.adapters):
            scores = self._evaluate(model)
        self._scored.append(Scored(step, seen, scores, time.monotonic() - began))

    @property
    def awaited(self) -> Collection[int]:
        """Steps of the checkpoints that are still to be read."""
        return ()

    def has_news(self) -> bool:
        """Returns whether `take` has something to return, or to raise."""
        return bool(self._scored)

    def take(self) -> list[Scored]:
        """Returns the scores that are there, each once, in the order of their steps.

        Raises:
            T2TError: they cannot be measured.
        """
        scored, self._scored = self._scored, []
        return scored

    def close(self) -> None:
        """Drops what is being measured."""
