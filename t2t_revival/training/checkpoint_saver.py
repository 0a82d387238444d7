"""`CheckpointSaver`: checkpoints of a training, written beside it, and the best ones."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.checkpoints import best
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.curve_files import DEV, cell, comparable_rows
from t2t_revival.errors import T2TError
from t2t_revival.training.events import BestEvent, NoteEvent, OnEvent, SavedEvent, Scores
from t2t_revival.training.model import TrainingTransformer
from t2t_revival.training.run_config import AUTO, RunConfig
from t2t_revival.training.state import TrainingProgress


@dataclass
class CheckpointSaver:
    """Saves checkpoints of a model, its optimizer and the training's state, and removes old ones.

    Arrays are copied at once, and written by a thread while training goes on.

    Attributes:
        step: of the last checkpoint; 0 before the first.
    """

    config: RunConfig
    model: TrainingTransformer
    progress: TrainingProgress
    on_event: OnEvent
    chief: bool  # of several workers, the chief alone saves
    dev_labels: Mapping[str, str]  # fingerprints of the dev data, which comparable evaluations share
    step: int = field(init=False)

    def __post_init__(self) -> None:
        self.step, self._saved_at = self.progress.start.step, time.monotonic()
        self._writer = ThreadPoolExecutor(1, "checkpoints")
        self._written: Future[Path] | None = None

    def is_due(self) -> bool:
        """Returns whether the last checkpoint is older than `save_seconds`, in the process that saves."""
        seconds = self.config.save_seconds if self.chief else 0
        return bool(seconds) and time.monotonic() - self._saved_at >= seconds

    def save(self) -> None:
        """Begins to write a checkpoint of the last update, unless that has one; raises as `wait`."""
        step, optimizer = self.progress.step, self.model.optimizer
        if step == self.step or not self.chief:
            return
        self.wait()
        arrays = {**checkpoints.model_arrays(self.model), **checkpoints.optimizer_arrays(optimizer)}
        meta = {
            **self.progress.state.to_meta(),
            "architecture": self.model.hparams.architecture(),
            "loss_scale": optimizer.loss_scale,
            "replicas": self.progress.batches.replicas,
        }
        self._written = self._writer.submit(self._write, step, arrays, meta)
        self.step, self._saved_at = step, time.monotonic()

    def wait(self) -> None:
        """Waits until the last checkpoint is written, and reports it; raises as `checkpoints.file.save`."""
        if not self._written:
            return
        written, self._written = self._written, None
        path = written.result()
        self.on_event(SavedEvent(self.step, path))

    def report_written(self) -> None:
        """Reports the last checkpoint if it is written by now; raises as `wait`."""
        if self._written and self._written.done():
            self.wait()

    def close(self) -> None:
        """Waits until nothing is being written."""
        self._writer.shutdown()

    def _write(self, step: int, arrays: Mapping[str, np.ndarray], meta: dict[str, Any]) -> Path:
        path = self.config.output_dir / checkpoints.file_name(step)
        checkpoints.save(path, arrays, meta)
        checkpoints.prune(self.config.output_dir, self.config.keep_checkpoints)
        return path

    def keep_best(self, step: int, scores: Scores) -> BestEvent | None:
        """Keeps the checkpoint of an update if its evaluation is one of the best.

        It must be called before the evaluation is in dev.csv, so that a training that is killed in between
        evaluates again.

        Raises:
            T2TError: the score that decides is not measured, or the checkpoint cannot be copied.
        """
        self.wait()
        config = self.config
        score = config.best_score
        if score == AUTO:
            score = next((name for name in ("bleu", "f1") if name in scores), "loss")
        if score not in scores:
            raise T2TError(f"--best_metric={score} is not measured here: give one of {', '.join(scores)}")
        rows = comparable_rows(config.output_dir, DEV, score, self.dev_labels)
        values = {int(row["step"]): row[score] for row in rows} | {step: float(cell(scores[score]))}
        if aside := best.set_aside(config.output_dir, values):
            self.on_event(NoteEvent(f"the best on other dev data, or decoded otherwise, are kept in {aside}"))
        is_best = best.keep_best(config.output_dir, values, score, config.keep_best) == step
        return BestEvent(step, config.output_dir / checkpoints.BEST, score) if is_best else None
