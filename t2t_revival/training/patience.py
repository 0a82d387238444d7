"""Early stopping."""

from __future__ import annotations

import math

from t2t_revival.errors import T2TError
from t2t_revival.training.curve_files import LOWER_IS_BETTER
from t2t_revival.training.news import Scores
from t2t_revival.training.settings import Settings


class Patience:
    """Early stopping: says when a score has not become better for long enough.

    Args:
        settings: reads `patience`, `patience_score` and `patience_delta`.
        history: earlier evaluations on the same data, each with its "step" and the score.
    """

    def __init__(self, settings: Settings, history: list[Scores]) -> None:
        self._settings = settings
        self._best, self._best_step = math.inf, 0
        for scores in history:
            self.exhausted(int(scores["step"]), scores)

    def exhausted(self, step: int, scores: Scores) -> bool:
        """Whether to stop after the evaluation of `step`.

        Raises:
            T2TError: the score that is watched is not measured.
        """
        if not self._settings.patience:
            return False
        name = self._settings.patience_score
        if name not in scores:
            raise T2TError(f"--eval_early_stopping_metric={name} is not measured; known: {', '.join(scores)}")
        score = scores[name] if name in LOWER_IS_BETTER else -scores[name]
        if score < self._best - self._settings.patience_delta:
            self._best, self._best_step = score, step
        return step - self._best_step >= self._settings.patience
