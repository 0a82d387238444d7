"""State of a training besides its weights, in a checkpoint's meta data and while it runs."""

from __future__ import annotations

import dataclasses
import math
import operator
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival.curve_files import DATA, DECODING, TRAIN
from t2t_revival.data.batching import IteratorState
from t2t_revival.errors import T2TError
from t2t_revival.training.events import NoteEvent, OnEvent

if TYPE_CHECKING:
    from t2t_revival.data.batching import TrainingBatches
    from t2t_revival.training.engines.engine import StepLogs


@dataclass(frozen=True)
class Seen:
    """Data consumed since the first session of a training.

    Attributes:
        target_tokens: without padding.
        source_tokens: without padding.
        examples: sentence pairs.
        seconds: spent in training, evaluations included.
    """

    target_tokens: int = 0
    source_tokens: int = 0
    examples: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of a training's data; an empty one is unknown.

    Attributes:
        train: of the training split; stored in each checkpoint and in train.csv.
        dev: of the dev split, on which loss, perplexity and accuracy depend; stored in dev.csv.
        decoding: of the way in which dev sentences are decoded, on which BLEU and F1 depend, too.
    """

    train: str = ""
    dev: str = ""
    decoding: str = ""

    def labels(self, curve: str) -> dict[str, str]:
        """The columns of train.csv or dev.csv that name the data of a row."""
        return {DATA: self.train} if curve == TRAIN else {DATA: self.dev, DECODING: self.decoding}


@dataclass(frozen=True)
class TrainingState:
    """State of a training after an update.

    Attributes:
        step: updates done.
        position: of the next batch in the data.
        seen: data consumed, also by skipped updates.
        skipped_updates: updates that were not done because loss or gradients were not finite.
        overflows: updates that were not done because scaled gradients overflowed float16.
        data: fingerprint of the training data; empty in imported checkpoints.
    """

    step: int = 0
    position: IteratorState = field(default_factory=IteratorState)
    seen: Seen = field(default_factory=Seen)
    skipped_updates: int = 0
    overflows: int = 0
    data: str = ""

    def was_trained_on_other_data(self, train: str) -> bool:
        """Returns whether the training data, of which `train` is the fingerprint, was another so far."""
        return bool(self.data and train) and self.data != train

    def to_meta(self) -> dict[str, Any]:
        """Fields of a checkpoint's meta data, in which `skipped_updates` is called "left_out"."""
        fields = dataclasses.asdict(self)
        fields["left_out"] = fields.pop("skipped_updates")
        return fields

    @classmethod
    def from_meta(cls, meta: dict[str, Any], path: Path) -> TrainingState:
        """Reads a checkpoint's meta data.

        Raises:
            T2TError: `path` is an average, from which no training resumes.
        """
        try:
            position, seen = IteratorState(**meta["position"]), Seen(**meta["seen"])
            skipped = meta.get("left_out", 0)  # which imported checkpoints do not have
            return cls(meta["step"], position, seen, skipped, meta["overflows"], meta["data"])
        except (KeyError, TypeError) as error:
            raise T2TError(f"{path}: not a checkpoint from which a training can resume ({error})") from error


class DivergedError(T2TError):
    """Too many updates in a row were skipped: the weights are not worth saving."""


@dataclass
class Progress:
    """Counts of a training, continued from the state in which it resumed; see `TrainingState`.

    Attributes:
        losses: of each update since the last report: the plain cross-entropy, and the minimised loss.
        saved: step of the last checkpoint; 0 before the first.
    """

    start: TrainingState
    batches: TrainingBatches
    accumulate: int  # micro-batches of one update
    train_steps: int  # number of the last update
    loss_scale: float  # after the last update
    max_nonfinite_steps: int
    on_event: OnEvent
    losses: list[tuple[float, float]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.step = self.saved = self.start.step
        self.skipped_updates, self.overflows = self.start.skipped_updates, self.start.overflows
        self._nonfinite_in_a_row = 0
        self._began = time.monotonic()

    def add(self, updates: Iterable[StepLogs]) -> bool:
        """Counts updates, and returns whether the last of them was done.

        The data of one that the optimizer skipped is consumed all the same.

        Raises:
            DivergedError: too many in a row were skipped, and no overflow of float16 was the reason.
        """
        is_done = False
        for logs in updates:
            is_done = logs.updates > self.step
            if is_done:
                self.step += 1
                self._nonfinite_in_a_row = 0
                self.losses.append((logs.cross_entropy, logs.loss))
            elif math.isfinite(logs.loss) and logs.loss_scale < self.loss_scale:  # no fault of the training
                self.overflows += 1
                fault = f"update {self.step + 1} skipped: scaled gradients overflow float16"
                self.on_event(NoteEvent(f"{fault}; loss scale lowered to {logs.loss_scale:g}"))
            else:
                self._add_nonfinite(logs.loss)
            self.loss_scale = logs.loss_scale
        return is_done

    def _add_nonfinite(self, loss: float) -> None:
        self.skipped_updates += 1
        self._nonfinite_in_a_row += 1
        number, in_a_row = self.step + 1, self._nonfinite_in_a_row
        fault = "gradients are not finite" if math.isfinite(loss) else f"loss is {loss}"
        if in_a_row == self.max_nonfinite_steps:
            intact = f"the last checkpoint (step {self.saved}) is intact"
            raise DivergedError(
                f"training diverged at update {number}: {fault}, {in_a_row} times in a row; "
                f"{intact if self.saved else 'no checkpoint was saved yet'}: try a lower "
                "learning_rate_constant or a longer warm-up"
            )
        counts = f"{in_a_row} in a row, {self.skipped_updates} in all"
        self.on_event(NoteEvent(f"update {number} skipped: {fault} ({counts})"))

    @property
    def seconds(self) -> float:
        """Time since this session began."""
        return time.monotonic() - self._began

    @property
    def is_first(self) -> bool:
        """True after the session's first update, which traces the graph."""
        return self.step == self.start.step + 1

    def is_every(self, steps: int, step: int | None = None) -> bool:
        """Returns whether an update is one of every `steps`, or the very last; 0 selects the very last.

        `step` is the update's number; `None` takes the last one done.
        """
        number = self.step if step is None else step
        return number == self.train_steps or bool(steps and number % steps == 0)

    @property
    def state(self) -> TrainingState:
        """State after the last update."""
        start = self.start
        updates = self.step - start.step
        skipped = self.skipped_updates + self.overflows - start.skipped_updates - start.overflows
        consumed = (updates + skipped) * self.accumulate
        counts = (*self.batches.tokens(consumed), self.seconds)
        seen = Seen(*map(operator.add, dataclasses.astuple(start.seen), counts))
        position = self.batches.position(consumed)
        return TrainingState(self.step, position, seen, self.skipped_updates, self.overflows, start.data)
