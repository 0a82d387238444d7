"""Events of a training, with which `on_event` is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.curve_files import Scores

EARLY = "early stopping"  # a reason to end a training


@dataclass(frozen=True)
class StepEvent:
    """Progress of a training after an update.

    Attributes:
        step: number of the update.
        train_steps: number of the last update.
        loss: cross-entropy in nats per target token, with dropout; mean of the updates since the last event.
        smoothed_loss: the loss that is minimised, likewise: `loss` against smoothed labels, less their
            entropy. Equal to `loss` without label smoothing.
        tokens_per_second: target tokens without padding; time of evaluations does not count.
        learning_rate: of this update.
        seconds_left: estimate, evaluations included. `None` after the first update, which traces the graph.
    """

    step: int
    train_steps: int
    loss: float
    smoothed_loss: float
    tokens_per_second: float
    learning_rate: float
    seconds_left: float | None


@dataclass(frozen=True)
class EvaluatedEvent:
    """An evaluation: its scores by name, and the seconds it took."""

    step: int
    scores: Scores
    seconds: float


@dataclass(frozen=True)
class SavedEvent:
    """A checkpoint that was saved."""

    step: int
    path: Path


@dataclass(frozen=True)
class BestEvent:
    """A checkpoint that is better than all before it, by a score; it is kept in a folder for that."""

    step: int
    folder: Path
    score: str


@dataclass(frozen=True)
class NoteEvent:
    """One line of text for the user."""

    text: str


Event = StepEvent | EvaluatedEvent | SavedEvent | BestEvent | NoteEvent
OnEvent = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """The `on_event` of a training that reports nothing."""
