"""Checkpoints that a training saves."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from t2t_revival.training.checkpoints import directory as checkpoints
from t2t_revival.training.events import OnEvent, SavedEvent
from t2t_revival.training.model import TrainingTransformer
from t2t_revival.training.run_config import RunConfig
from t2t_revival.training.state import TrainingProgress


@dataclass
class CheckpointSaver:
    """Saves checkpoints of a model, its optimizer and the training's state, and removes old ones.

    Attributes:
        step: of the last checkpoint; 0 before the first.
    """

    config: RunConfig
    model: TrainingTransformer
    progress: TrainingProgress
    on_event: OnEvent
    chief: bool  # of several workers, the chief alone saves
    step: int = field(init=False)

    def __post_init__(self) -> None:
        self.step, self._saved_at = self.progress.start.step, time.monotonic()

    def is_due(self) -> bool:
        """Returns whether the last checkpoint is older than `save_seconds`."""
        seconds = self.config.save_seconds
        return bool(seconds) and time.monotonic() - self._saved_at >= seconds

    def save(self) -> None:
        """Saves a checkpoint of the last update, unless that has one.

        Raises:
            T2TError: it cannot be written.
        """
        step, output_dir, optimizer = self.progress.step, self.config.output_dir, self.model.optimizer
        if step == self.step or not self.chief:
            return
        path = output_dir / checkpoints.file_name(step)
        arrays = {**checkpoints.model_arrays(self.model), **checkpoints.optimizer_arrays(optimizer)}
        meta = {
            **self.progress.state.to_meta(),
            "architecture": self.model.hparams.architecture(),
            "loss_scale": optimizer.loss_scale,
            "replicas": self.progress.batches.replicas,
        }
        checkpoints.save(path, arrays, meta)
        checkpoints.prune(output_dir, self.config.keep_checkpoints)
        self.step, self._saved_at = step, time.monotonic()
        self.on_event(SavedEvent(step, path))
