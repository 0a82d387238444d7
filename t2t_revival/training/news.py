"""What a training tells who runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Scores = dict[str, float]


@dataclass(frozen=True)
class Step:
    """News of an update.

    Attributes:
        step: its number.
        train_steps: the last one's.
        loss: cross-entropy in nats per target token, with dropout; mean of the updates since the last news.
        smoothed_loss: what is minimised, likewise: `loss` against smoothed labels, less their entropy. The
            same as `loss` without label smoothing.
        tokens_per_second: target tokens without padding, evaluations left out.
        learning_rate: of this update.
        seconds_left: estimated, evaluations included; None with the first update, which traces the graph.
    """

    step: int
    train_steps: int
    loss: float
    smoothed_loss: float
    tokens_per_second: float
    learning_rate: float
    seconds_left: float | None


@dataclass(frozen=True)
class Evaluated:
    """News of an evaluation: its scores by name, and the seconds it took."""

    step: int
    scores: Scores
    seconds: float


@dataclass(frozen=True)
class Saved:
    """News of a checkpoint."""

    step: int
    path: Path


@dataclass(frozen=True)
class Note:
    """News in one line of text."""

    text: str


Report = Callable[[Step | Evaluated | Saved | Note], None]
