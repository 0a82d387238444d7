"""`Monitor`: reports, checkpoints, dev scores and the end of a training, beside its updates.

`Curves` writes CSV files, see `curve_files`, and the same scores as events for TensorBoard:

output_dir/events.*       scores of train.csv by step
output_dir/eval/events.*  scores of dev.csv by step
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints import selection
from t2t_revival.curve_files import (
    DEV,
    SMOOTHED,
    TRAIN,
    CsvTable,
    Scores,
    cell,
    comparable_rows,
    csv_path,
    drop_after,
)
from t2t_revival.errors import T2TError
from t2t_revival.metrics.metric import main_score, metric_of
from t2t_revival.training.engines.engine import Engine
from t2t_revival.training.events import (
    EARLY,
    BestEvent,
    EvaluatedEvent,
    NoteEvent,
    OnEvent,
    SavedEvent,
    StepEvent,
)
from t2t_revival.training.model import TrainingTransformer, merged
from t2t_revival.training.optimizer import learning_rate
from t2t_revival.training.run_config import AUTO, RunConfig
from t2t_revival.training.state import Fingerprints, Progress, Seen
from t2t_revival.utils.files import writing
from t2t_revival.utils.score_events import ScoreEvents
from t2t_revival.utils.signals import ending_signals, handling

REPORT_SECONDS = 60.0  # after which a slow machine reports, whatever `log_steps` is
MAX_PENDING = 1000  # micro-batches that are started and not yet counted
MAX_PENDING_OF_SEVERAL = 20  # updates, of workers that stop together
REASONS = (None, "SIGHUP", "SIGINT", "SIGTERM", EARLY)  # the later one wins where workers have different ones

Evaluate = Callable[[Any], Scores]
EVENT_FOLDERS = {TRAIN: "", DEV: "eval"}


class Curves:
    """Writer of scores by step; a context manager that closes its files.

    Args:
        output_dir: folder of the curves.
        start_step: rows of later updates are dropped, since a training that resumes there repeats them.
        labels: fingerprints for the rows of each curve, by column; empty ones are not written.
    """

    def __init__(self, output_dir: Path, start_step: int, labels: Mapping[str, Mapping[str, str]]) -> None:
        self._output_dir, self._labels = output_dir, labels
        self._events: dict[str, ScoreEvents] = {}
        for curve in EVENT_FOLDERS:
            drop_after(csv_path(output_dir, curve), start_step)

    def __enter__(self) -> Curves:
        with self._writing():
            for curve, folder in EVENT_FOLDERS.items():
                self._events[curve] = ScoreEvents(self._output_dir / folder)
        return self

    def __exit__(self, *error: object) -> None:
        for events in self._events.values():
            with suppress(OSError):  # `add` has flushed everything
                events.close()

    def add(self, curve: str, step: int, seen: Seen, scores: dict[str, float]) -> None:
        """Adds a point to the curve of each score; raises T2TError if it cannot be written."""
        row = {
            "step": step,
            "target_tokens": seen.target_tokens,
            "seconds": f"{seen.seconds:.1f}",
            **{name: cell(value) for name, value in scores.items()},
            **{name: label for name, label in self._labels.get(curve, {}).items() if label},
        }
        with self._writing():
            self._events[curve].add(step, time.time(), scores)
            CsvTable(csv_path(self._output_dir, curve)).append(row)

    def _writing(self) -> AbstractContextManager[None]:
        remedy = "the checkpoints there are untouched: fix that, and start the same command again"
        return writing(f"curves in {self._output_dir}", remedy)


class Monitor:
    """Does what is due after updates: `report`, `save`, `score`, and stop the training, in this order.

    Results of updates stay on the device until something is due, so that devices do not wait for this
    process.

    Args:
        config: of the run.
        model: that is trained.
        progress: counts of the training.
        engine: its processes stop together, whichever of them has a reason; the chief alone writes.
        evaluate: called with the model; returns its dev scores. `None` leaves evaluations out.
        fingerprints: of the data.
        on_event: called with each event.

    Attributes:
        scores: of the last evaluation; empty before the first.
        stopped_by: why training stops before its last update, one of `REASONS`; `None` while it continues.
    """

    def __init__(
        self,
        config: RunConfig,
        model: TrainingTransformer,
        progress: Progress,
        engine: Engine,
        evaluate: Evaluate | None,
        fingerprints: Fingerprints,
        on_event: OnEvent,
    ) -> None:
        self._config, self._model, self._progress, self._engine = config, model, progress, engine
        self._evaluate = evaluate if engine.chief else None
        self._labels = {curve: fingerprints.labels(curve) for curve in (TRAIN, DEV)}
        self._on_event = on_event
        self.scores: Scores = {}
        self.stopped_by: str | None = None
        self._reason: str | None = None  # of this process to stop; a signal sets it at any time
        self._written: Future[Path] | None = None  # the checkpoint that is being written
        self._saved_at = self._reported_at = self._first_update_ended = time.monotonic()
        self._tokens = 0  # target tokens of this session until the last report

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Handles SIGINT, SIGTERM and SIGHUP: the first stops after this update, a second one at once.

        When a terminal is gone, shell, kernel and session manager each send a signal: a second SIGHUP has no
        effect, nor has the first other signal after it. See `handling`.

        Raises:
            T2TError: as `Curves`.
        """
        start, config = self._progress.start, self._config
        with (
            Curves(config.output_dir, start.step, self._labels)
            if self._engine.chief
            else nullcontext() as self._curves,
            handling(dict.fromkeys(ending_signals(), self._on_signal)),
            ThreadPoolExecutor(1, "checkpoints") as self._writer,
        ):
            yield

    def _on_signal(self, number: int, frame: Any) -> None:
        reason = signal.Signals(number).name
        if self._reason in ("SIGINT", "SIGTERM"):
            if reason == "SIGHUP":
                return
            raise KeyboardInterrupt
        self._reason = reason

    def is_due(self, updates: int) -> bool:
        """Returns whether to wait for updates that were started: all workers decide the same."""
        progress, config = self._progress, self._config
        latest = progress.step + updates  # if none was skipped
        if progress.step == progress.start.step or updates * progress.accumulate >= MAX_PENDING:
            return True
        if progress.is_every(config.log_steps, latest) or progress.is_every(config.eval_frequency, latest):
            return True
        if self._engine.several:
            return updates >= MAX_PENDING_OF_SEVERAL
        return self._is_time_to_report() or self._is_time_to_save() or self._reason is not None

    def act(self) -> None:
        """Does what is due after an update that was done.

        Raises:
            T2TError: something cannot be measured, or written.
        """
        progress, config = self._progress, self._config
        if self._written and self._written.done():
            self.wait()
        if progress.is_first or progress.is_every(config.log_steps) or self._is_time_to_report():
            self.report()
        began = time.monotonic()
        is_evaluated = progress.is_every(config.eval_frequency)
        if is_evaluated or self._engine.all_reduce_max(self._is_time_to_save()):
            self.save()
        if is_evaluated:
            self.score()
        self._reported_at += time.monotonic() - began  # time that does not count as that of updates

    def report(self) -> None:
        """Reports losses and speed of the updates since the last report; raises as `Curves.add`."""
        progress, now = self._progress, time.monotonic()
        seen = progress.state.seen
        tokens = seen.target_tokens - progress.start.seen.target_tokens
        loss, smoothed = np.mean(progress.losses, axis=0).tolist()
        scores = {
            "loss": loss,
            SMOOTHED: smoothed,
            "learning_rate": float(learning_rate(self._model.hparams, progress.step)),
            "tokens_per_second": (tokens - self._tokens) / max(now - self._reported_at, 1e-9),
        }
        seconds_left = None
        if not progress.is_first:  # by the pace since the first update
            pace = (now - self._first_update_ended) / (progress.step - progress.start.step - 1)
            seconds_left = (progress.train_steps - progress.step) * pace
        if self._curves:
            self._curves.add(TRAIN, progress.step, seen, scores)
        self._on_event(StepEvent(progress.step, progress.train_steps, **scores, seconds_left=seconds_left))
        progress.losses.clear()
        self._tokens, self._reported_at = tokens, time.monotonic()
        if progress.is_first:
            self._first_update_ended = self._reported_at

    def save(self) -> None:
        """Begins to write a checkpoint of the last update, unless that has one; raises as `wait`.

        All processes must call it. Arrays are copied at once, and written by a thread while training goes on.
        """
        self._engine.synchronize()
        progress, optimizer = self._progress, self._model.optimizer
        if progress.step == progress.saved or not self._engine.chief:
            return
        self.wait()
        arrays = {**checkpoints.model_arrays(self._model), **checkpoints.optimizer_arrays(optimizer)}
        meta = {
            **progress.state.to_meta(),
            "architecture": self._model.hparams.architecture(),
            "loss_scale": optimizer.loss_scale,
            "replicas": progress.batches.settings.replicas,
        }
        self._written = self._writer.submit(self._write, progress.step, arrays, meta)
        progress.saved, self._saved_at = progress.step, time.monotonic()

    def _write(self, step: int, arrays: Mapping[str, np.ndarray], meta: dict[str, Any]) -> Path:
        path = self._config.output_dir / checkpoints.file_name(step)
        checkpoints.save(path, arrays, meta, ", or give a lower --keep_checkpoint_max")
        checkpoints.prune(self._config.output_dir, self._config.keep_checkpoints)
        return path

    def wait(self) -> None:
        """Waits until the last checkpoint is written, and reports it; raises as `checkpoints.file.save`."""
        if self._written:
            written, self._written = self._written, None
            path = written.result()
            self._on_event(SavedEvent(self._progress.saved, path))

    def _is_time_to_report(self) -> bool:
        return bool(self._config.log_steps) and time.monotonic() - self._reported_at >= REPORT_SECONDS

    def _is_time_to_save(self) -> bool:
        """Returns whether the last checkpoint is older than `save_seconds`, in the process that saves."""
        seconds = self._config.save_seconds if self._engine.chief else 0
        return bool(seconds) and time.monotonic() - self._saved_at >= seconds

    def score(self) -> None:
        """Measures and reports the scores of the last update; keeps its checkpoint if it is one of the best.

        Raises:
            T2TError: they cannot be measured, or written.
        """
        if not self._evaluate:
            return
        began, config, progress = time.monotonic(), self._config, self._progress
        with self._model.optimizer.averaged_weights(), merged(self._model.adapters):
            self.scores = self._evaluate(self._model)
        seconds = time.monotonic() - began
        # Before the scores are in dev.csv, so that a training that is killed in between evaluates again.
        is_best, decisive = self._keep_best()
        if self._curves:
            self._curves.add(DEV, progress.step, progress.state.seen, self.scores)
        self._on_event(EvaluatedEvent(progress.step, self.scores, seconds))
        if is_best:
            self._on_event(BestEvent(progress.step, config.output_dir / checkpoints.BEST, decisive))
        if config.patience and self._reason is None:  # a signal that came before takes precedence
            name = self._measured("eval_early_stopping_metric", config.patience_score)
            rows = comparable_rows(config.output_dir, DEV, name, self._labels[DEV])
            if steps_without_better(rows, name, config.min_delta) >= config.patience:
                self._reason = EARLY

    def _keep_best(self) -> tuple[bool, str]:
        """Keeps the best checkpoints; returns whether the last one is the best, and by which score."""
        self.wait()
        config, step = self._config, self._progress.step
        score = main_score(self.scores) if config.best_score == AUTO else config.best_score
        self._measured("best_metric", score)
        rows = comparable_rows(config.output_dir, DEV, score, self._labels[DEV])
        values = {int(row["step"]): row[score] for row in rows} | {step: float(cell(self.scores[score]))}
        if aside := selection.set_aside(config.output_dir, values):
            self._on_event(
                NoteEvent(f"the best on other dev data, or decoded otherwise, are kept in {aside}")
            )
        return selection.keep_best(config.output_dir, values, score, config.keep_best) == step, score

    def _measured(self, flag: str, name: str) -> str:
        """Returns the name of a score, which must have been measured."""
        if name not in self.scores:
            raise T2TError(f"--{flag}={name} is not measured here: give one of {', '.join(self.scores)}")
        return name

    def is_over(self) -> bool:
        """Decides whether training ends: all workers must call it after the same updates, and agree."""
        self.stopped_by = REASONS[self._engine.all_reduce_max(REASONS.index(self._reason))]
        return self.stopped_by is not None or self._progress.step == self._progress.train_steps


def steps_without_better(rows: list[dict[str, float]], score: str, min_delta: float) -> float:
    """Returns the updates from the best evaluation to the last.

    Args:
        rows: evaluations that can be compared, oldest first, each with its "step" and the score.
        score: such as "bleu".
        min_delta: least improvement that counts as better.
    """
    best_rank, best_step = math.inf, 0.0
    for row in rows:
        rank = metric_of(score).rank(row[score])
        if rank < best_rank - min_delta:
            best_rank, best_step = rank, row["step"]
    return rows[-1]["step"] - best_step if rows else 0.0
