"""What happens after each update of a training: news, evaluation, checkpoints, stopping."""

from __future__ import annotations

import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import numpy as np

from t2t_revival.data.batching import TrainingBatches
from t2t_revival.errors import T2TError
from t2t_revival.training import checkpoints
from t2t_revival.training.curve_files import DEV, SMOOTHED, TRAIN
from t2t_revival.training.curves import Curves
from t2t_revival.training.news import Evaluated, Note, Report, Saved, Scores, Step
from t2t_revival.training.patience import Patience
from t2t_revival.training.settings import Settings
from t2t_revival.training.state import Seen, TrainingState
from t2t_revival.training.workers import Workers

EARLY = "early stopping"
REASONS = (None, "SIGINT", "SIGTERM", EARLY)  # why training stops before its end
Evaluate = Callable[[Any], Scores]


class Losses(NamedTuple):
    """Losses of a micro-batch per target token, in nats: the minimised one, and the plain cross-entropy."""

    smoothed: float
    plain: float


class Session(keras.callbacks.Callback):
    """From the start of a training, or from its resumption, to its end or interruption.

    Args:
        settings: how the training runs.
        start: where it stands.
        batches: what it is fed with.
        accumulate: micro-batches of one update.
        train_steps: number of the last update.
        curves: get a point for each news and each evaluation; None where another worker is the chief.
        patience: for early stopping.
        evaluate: gives the scores of the model on the dev split; None: no evaluation.
        report: is told the news.
        workers: that train together; the chief writes.

    Attributes:
        step: updates done.
        scores: the last evaluation's.
        stopped_by: why training stops before its end; None while it does not.
        left_out: updates not done since loss or gradients were not finite, in all sessions.
        overflows: updates not done since scaled gradients overflowed float16, in all sessions.
        broken: whether so many of them came in a row that the weights are not worth saving.
    """

    def __init__(
        self,
        settings: Settings,
        start: TrainingState,
        batches: TrainingBatches,
        accumulate: int,
        train_steps: int,
        curves: Curves | None,
        patience: Patience,
        evaluate: Evaluate | None = None,
        report: Report | None = None,
        workers: Workers | None = None,
    ) -> None:
        super().__init__()
        self.step = start.step
        self.scores: Scores = {}
        self.stopped_by: str | None = None
        self._wanted: str | None = None  # why this process would stop; signals set it at any time
        self.left_out = start.left_out
        self.overflows = start.overflows
        self.broken = False
        self._settings = settings
        self._start = start
        self._batches = batches
        self._accumulate = accumulate
        self._train_steps = train_steps
        self._curves = curves
        self._patience = patience
        self._evaluate = evaluate
        self._report = report or (lambda news: None)
        self._workers = workers or Workers()
        self._began = self._window_began = self._saved_at = time.monotonic()
        self._first_update_ended = self._began
        self._window_tokens = 0
        self._window_losses: list[Losses] = []
        self._losses: list[Losses] = []  # of the micro-batches of the update at hand
        self._loss_scale: Any = None  # the optimizer's, after the last update
        self._left_out_in_a_row = 0
        self._saved_step = start.step

    @property
    def seconds(self) -> float:
        """Since this session began."""
        return time.monotonic() - self._began

    @property
    def state(self) -> TrainingState:
        """Where the training stands after the last update."""
        start = self._start
        left_out = self.left_out + self.overflows - start.left_out - start.overflows
        done = (self.step - start.step + left_out) * self._accumulate
        now, before = self._batches.tokens(done), start.seen
        seen = Seen(
            before.target_tokens + now.target_tokens,
            before.source_tokens + now.source_tokens,
            before.examples + now.examples,
            before.seconds + self.seconds,
        )
        position = self._batches.position(done)
        return TrainingState(self.step, position, seen, self.left_out, self.overflows, start.data)

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Inside, SIGINT and SIGTERM stop after the update at hand; a second one stops at once.

        Outside the main thread, to which Python gives all signals, nothing is heard.
        """
        in_main_thread = threading.current_thread() is threading.main_thread()
        heard = (signal.SIGINT, signal.SIGTERM) if in_main_thread else ()
        before = {number: signal.signal(number, self._hear) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, frame: Any) -> None:
        if self._wanted is not None:
            raise KeyboardInterrupt
        self._wanted = signal.Signals(number).name

    def on_train_begin(self, logs: Any = None) -> None:
        self._loss_scale = self.model.optimizer.loss_scale

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.model.reset_metrics()  # so that the loss is this batch's, not the mean since the start

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._losses.append(Losses(float(logs["loss"]), float(logs["cross_entropy"])))
        if (batch + 1) % self._accumulate:
            return
        losses, self._losses = self._losses, []
        before, self._loss_scale = self._loss_scale, self.model.optimizer.loss_scale
        if self.model.optimizer.updates == self.step:
            finite = all(math.isfinite(loss.smoothed) for loss in losses)
            if before and finite and self._loss_scale.scale < before.scale:
                self._note_overflow()
            else:
                self._leave_out(losses)
        else:
            self._left_out_in_a_row = 0
            self._window_losses += losses
            self.step += 1
            self._after_update()
        self.model.stop_training = self._is_over()

    def evaluate_checkpoint(self) -> bool:
        """Evaluates the checkpoint that training goes on from; says whether there is more to train."""
        self._score()
        return not self._is_over()

    def _is_over(self) -> bool:
        self.stopped_by = REASONS[self._workers.largest(REASONS.index(self._wanted))]
        return self.stopped_by is not None or self.step == self._train_steps

    def _note_overflow(self) -> None:
        """Takes note of an update for which the loss was scaled up too much: no fault of the training."""
        self.overflows += 1
        fault = f"update {self.step + 1}: its scaled gradients overflow float16"
        self._report(Note(f"{fault}, left out; loss scale {self._loss_scale.scale:g}"))

    def _leave_out(self, losses: list[Losses]) -> None:
        """Takes note of an update that the optimizer has not done; the data goes on all the same."""
        self.left_out += 1
        self._left_out_in_a_row += 1
        in_a_row = self._left_out_in_a_row
        smoothed = [loss.smoothed for loss in losses]
        wrong = next((f"loss is {loss}" for loss in smoothed if not math.isfinite(loss)), None)
        fault = f"update {self.step + 1}: its {wrong or 'gradients are not finite'}"
        if in_a_row < self._settings.nonfinite_steps:
            self._report(Note(f"{fault}, left out ({in_a_row} in a row, {self.left_out} in all)"))
            return
        self.broken = True
        raise T2TError(
            f"{fault}, {in_a_row} times in a row; the last checkpoint (step {self._saved_step or 'none'}) is "
            "intact: try a lower learning_rate_constant or a longer warm-up"
        )

    def _after_update(self) -> None:
        settings = self._settings
        last, first = self.step == self._train_steps, self.step == self._start.step + 1
        if last or first or (settings.log_steps and self.step % settings.log_steps == 0):
            self._tell(first)
        if last or (settings.eval_frequency and self.step % settings.eval_frequency == 0):
            self.save()
            self._score()
        elif settings.save_seconds and time.monotonic() - self._saved_at >= settings.save_seconds:
            self.save()
        if first:
            self._first_update_ended = time.monotonic()

    def _tell(self, first: bool) -> None:
        state = self.state
        tokens = state.seen.target_tokens - self._start.seen.target_tokens
        smoothed, plain = np.mean(self._window_losses, axis=0).tolist()
        news = Step(
            step=self.step,
            train_steps=self._train_steps,
            loss=plain,
            smoothed_loss=smoothed,
            tokens_per_second=(tokens - self._window_tokens)
            / max(time.monotonic() - self._window_began, 1e-9),
            learning_rate=float(self.model.optimizer.learning_rate_at(self.step)),
            seconds_left=None if first else self._seconds_left(),
        )
        if self._curves:
            rates = {"learning_rate": news.learning_rate, "tokens_per_second": news.tokens_per_second}
            losses = {"loss": news.loss, SMOOTHED: news.smoothed_loss}
            self._curves.add(TRAIN, self.step, state.seen, {**losses, **rates})
        self._report(news)
        self._window_losses, self._window_tokens, self._window_began = [], tokens, time.monotonic()

    def _seconds_left(self) -> float:
        """From the pace since the first update, which is slow: it traces the graph."""
        pace = (time.monotonic() - self._first_update_ended) / (self.step - self._start.step - 1)
        return (self._train_steps - self.step) * pace

    def save(self) -> None:
        """Writes a checkpoint of the last update, once; none if training stopped at what is not finite.

        Raises:
            T2TError: it cannot be written.
        """
        if self.step == self._saved_step or self.broken or not self._workers.chief:
            return
        with self._apart_from_training():
            path = self._settings.output_dir / checkpoints.file_name(self.step)
            arrays = {
                **checkpoints.model_arrays(self.model),
                **checkpoints.optimizer_arrays(self.model.optimizer),
            }
            meta = {
                **dataclasses.asdict(self.state),
                "architecture": self.model.hparams.architecture(),
                "loss_scale": self.model.optimizer.loss_scale,
                "replicas": self._batches.replicas,
            }
            checkpoints.save(path, arrays, meta)
            checkpoints.keep_newest(self._settings.output_dir, self._settings.keep_checkpoints)
        self._saved_step, self._saved_at = self.step, time.monotonic()
        self._report(Saved(self.step, path))

    def _score(self) -> None:
        if self._evaluate is None or self._curves is None:
            return
        began = time.monotonic()
        with self._apart_from_training():
            self.scores = self._evaluate(self.model)
        self._curves.add(DEV, self.step, self.state.seen, self.scores)
        self._report(Evaluated(self.step, self.scores, time.monotonic() - began))
        if self._patience.exhausted(self.step, self.scores) and self._wanted is None:
            self._wanted = EARLY

    @contextmanager
    def _apart_from_training(self) -> Iterator[None]:
        """Time spent inside does not count into tokens per second."""
        began = time.monotonic()
        yield
        self._window_began += time.monotonic() - began
