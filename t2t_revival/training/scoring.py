"""Scores of a model on the dev split while it is trained."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from t2t_revival.training.curve_files import DEV
from t2t_revival.training.curves import Curves
from t2t_revival.training.events import EvaluatedEvent, OnEvent, Scores
from t2t_revival.training.state import TrainingProgress

Evaluate = Callable[[Any], Scores]


@dataclass
class DevScorer:
    """Evaluates a model, and adds its scores to the dev curve.

    Attributes:
        scores: of the last evaluation; empty before the first.
    """

    evaluate: Evaluate
    progress: TrainingProgress
    curves: Curves
    on_event: OnEvent
    scores: Scores = field(default_factory=dict)

    def score(self, model: Any) -> Scores:
        """Evaluates the model.

        Raises:
            T2TError: the curves cannot be written; and as `evaluate`.
        """
        began = time.monotonic()
        self.scores = self.evaluate(model)
        self.curves.add(DEV, self.progress.step, self.progress.state.seen, self.scores)
        self.on_event(EvaluatedEvent(self.progress.step, self.scores, time.monotonic() - began))
        return self.scores
