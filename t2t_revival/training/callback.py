"""The Keras callback of a training: counts updates, and reports, saves, evaluates and stops after each."""

from __future__ import annotations

import math
from typing import Any

import keras

from t2t_revival.errors import T2TError
from t2t_revival.training.events import NoteEvent
from t2t_revival.training.reporting import Losses, StepReporter
from t2t_revival.training.run_config import RunConfig
from t2t_revival.training.saving import CheckpointSaver
from t2t_revival.training.scoring import DevScorer
from t2t_revival.training.state import TrainingProgress
from t2t_revival.training.stopping import Stopping


class DivergedError(T2TError):
    """Too many updates in a row were skipped: the weights are not worth saving."""


class TrainingCallback(keras.callbacks.Callback):
    """Counts updates in `progress`; reports, saves, evaluates and stops after each, if it is due.

    Without a scorer nothing is evaluated.
    """

    def __init__(
        self,
        config: RunConfig,
        progress: TrainingProgress,
        reporter: StepReporter,
        saver: CheckpointSaver,
        scorer: DevScorer | None,
        stopping: Stopping,
    ) -> None:
        super().__init__()
        self._config = config
        self._progress = progress
        self._reporter = reporter
        self._saver = saver
        self._scorer = scorer
        self._stopping = stopping
        self._losses: list[Losses] = []  # of the micro-batches of the current update
        self._loss_scale: Any = None  # after the last update
        self._nonfinite_in_a_row = 0

    def evaluate_checkpoint(self) -> bool:
        """Evaluates the checkpoint that training resumes from, and returns whether more is to be trained."""
        self._score()
        return not self._is_over()

    def on_train_begin(self, logs: Any = None) -> None:
        self._loss_scale = self.model.optimizer.loss_scale

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.model.reset_metrics()  # so that the loss is this batch's, not the mean since the start

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._losses.append(Losses(float(logs["loss"]), float(logs["cross_entropy"])))
        if (batch + 1) % self._progress.accumulate:
            return
        losses, self._losses = self._losses, []
        if self.model.optimizer.updates == self._progress.step:
            self._after_skipped_update([loss.smoothed for loss in losses])
        else:
            self._reporter.add(losses)
            self._after_update()
        self._loss_scale = self.model.optimizer.loss_scale
        self.model.stop_training = self._is_over()

    def _after_update(self) -> None:
        progress, config = self._progress, self._config
        progress.step += 1
        self._nonfinite_in_a_row = 0
        if progress.is_first or progress.is_every(config.log_steps):
            self._reporter.report(float(self.model.optimizer.learning_rate_at(progress.step)))
        with self._reporter.pause():
            if progress.is_every(config.eval_frequency):
                self._saver.save()
                self._score()
            elif self._saver.is_due():
                self._saver.save()

    def _after_skipped_update(self, losses: list[float]) -> None:
        """Counts an update that the optimizer skipped; its data is consumed all the same.

        Raises:
            DivergedError: it is the last of too many in a row, and no overflow of float16.
        """
        progress, number = self._progress, self._progress.step + 1
        nonfinite = next((loss for loss in losses if not math.isfinite(loss)), None)
        scale = self.model.optimizer.loss_scale
        if nonfinite is None and scale and scale.scale < self._loss_scale.scale:  # no fault of the training
            progress.overflows += 1
            fault = f"update {number}: its scaled gradients overflow float16"
            self._reporter.on_event(NoteEvent(f"{fault}, skipped; loss scale {scale.scale:g}"))
            return
        progress.skipped_updates += 1
        self._nonfinite_in_a_row += 1
        in_a_row = self._nonfinite_in_a_row
        wrong = "gradients are not finite" if nonfinite is None else f"loss is {nonfinite}"
        fault = f"update {number}: its {wrong}"
        if in_a_row == self._config.max_nonfinite_steps:
            last = self._saver.step or "none"
            raise DivergedError(
                f"{fault}, {in_a_row} times in a row; the last checkpoint (step {last}) is intact: try a "
                "lower learning_rate_constant or a longer warm-up"
            )
        counts = f"{in_a_row} in a row, {progress.skipped_updates} in all"
        self._reporter.on_event(NoteEvent(f"{fault}, skipped ({counts})"))

    def _score(self) -> None:
        if self._scorer:
            self._stopping.on_scores(self._progress.step, self._scorer.score(self.model))

    def _is_over(self) -> bool:
        # All workers ask `stopping` after each update: the answer is a collective operation.
        return self._stopping.agree_to_stop() or self._progress.is_done
