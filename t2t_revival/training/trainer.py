"""`Trainer`: from the newest checkpoint to the last update (section 5)."""

from __future__ import annotations

import gc
import math
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints import selection
from t2t_revival.checkpoints.file import CorruptCheckpointError
from t2t_revival.curve_files import Scores
from t2t_revival.data.batching import BatchSettings, IteratorState, TrainingBatches, is_packed
from t2t_revival.data.records import SplitData
from t2t_revival.data.vocabulary.text_encoder import Splits
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model_folder import ModelFolder
from t2t_revival.training.engines.engine import Engine, accumulation
from t2t_revival.training.events import EARLY, NoteEvent, OnEvent, ignore_event
from t2t_revival.training.model import TrainingTransformer, build_model, compile_model
from t2t_revival.training.monitor import Evaluate, Monitor
from t2t_revival.training.optimizer import falls_to_zero
from t2t_revival.training.run_config import RunConfig, packs
from t2t_revival.training.state import DivergedError, Fingerprints, Progress, Seen, TrainingState
from t2t_revival.utils.keras_hooks import set_random_seed
from t2t_revival.utils.texts import readable_size

PACE_SECONDS = 2.0, 20.0  # least and most of the time in which a training's speed is measured
PACE_UPDATES = 5  # timed together, as they may overlap, where one takes less than a second
EVALUATION_SHARE = 0.07  # of a training's time, for evaluations and checkpoints


@dataclass(frozen=True)
class TrainingData:
    """The data that a model is trained on.

    Attributes:
        shards: the training split.
        vocab_size: tokens of the vocabulary; of the inputs' where there are two.
        token_flags: of the vocabulary, for `DeterministicAttention`; `None` for every other model.
        fingerprints: of training and dev data; early stopping compares scores of equal ones only.
        splits: of both sides' tokens, for `subword_dropout`; `None` without it.
        target_vocab_size: tokens of the targets' vocabulary; `None` where there is one for both.
    """

    shards: SplitData
    vocab_size: int
    token_flags: np.ndarray | None = None
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    splits: tuple[Splits, Splits] | None = None
    target_vocab_size: int | None = None


@dataclass(frozen=True)
class Result:
    """State and scores at the end of a training.

    Attributes:
        step: updates done.
        stopped_by: reason to stop before `train_steps`; `None` after the last update.
        seconds: duration of this session.
        seen: data consumed since the first session.
        scores: of the last evaluation.
        skipped_updates: updates since the first session not done because loss or gradients were not finite.
        overflows: updates since the first session not done because scaled gradients overflowed float16.
        chief: whether this process saved and evaluated; one of several workers does.
    """

    step: int
    stopped_by: str | None
    seconds: float
    seen: Seen
    scores: Scores = field(default_factory=dict)
    skipped_updates: int = 0
    overflows: int = 0
    chief: bool = True


@dataclass(frozen=True)
class Trainer:
    """A training in an output_dir, whose lock the caller must hold.

    Attributes:
        data: training data.
        hparams: of model and optimizer.
        config: of the run.
        engine: devices.
        evaluate: called with the model; returns its scores on the dev split, such as {"loss": 1.2}. `None`
            leaves evaluations out.
        on_event: called with each event.
        on_start: called by the chief with the state from which it starts, after all checks, before anything
            is written.
    """

    data: TrainingData
    hparams: HParams
    config: RunConfig
    engine: Engine
    evaluate: Evaluate | None = None
    on_event: OnEvent = ignore_event
    on_start: Callable[[TrainingState], None] = lambda start: None

    def run(self) -> Result:
        """Trains from the newest checkpoint to `hparams.train_steps`; SIGINT and SIGTERM save and stop.

        Raises:
            T2TError: nothing is left to train or to evaluate, no checkpoint is valid, the newest is of
                another model, the disk is full, or another worker is gone; and as the engine. Nothing was
                written then.
            T2TError: a shard is corrupt, too many losses in a row are not finite, memory or disk are full.
                The last update is saved then, if it can be.
        """
        data, hparams, config, engine = self.data, self.hparams, self.config, self.engine
        model = self._new_model()
        start, train = self._resume(model), data.fingerprints.train
        folder, evaluates = ModelFolder(config.output_dir), bool(self.evaluate and engine.chief)
        lacks_scores = folder.lacks_evaluation(start.step, hparams.train_steps, config.eval_frequency)
        scores_first = bool(engine.all_reduce_max(evaluates and lacks_scores))
        if start.step >= hparams.train_steps and not scores_first:
            raise folder.nothing_left(start.step, hparams.train_steps)
        is_other_data = start.was_trained_on_other_data(train)
        begin = IteratorState(start.position.epoch) if is_other_data else start.position
        batches = self._batches(begin)
        if engine.chief:
            self.on_start(start)
            if batches.note:
                self.on_event(NoteEvent(batches.note))
            config.output_dir.mkdir(parents=True, exist_ok=True)
            checkpoints.remove_unfinished(config.output_dir)
            selection.mark_stopped_early(config.output_dir, stopped=False)
        scale = model.optimizer.loss_scale
        progress = Progress(
            replace(start, data=train),
            batches,
            batches.settings.accumulate,
            hparams.train_steps,
            scale.scale if scale else 1.0,
            config.max_nonfinite_steps,
            self.on_event,
        )
        monitor = Monitor(config, model, progress, engine, self.evaluate, data.fingerprints, self.on_event)
        with monitor.watch():
            self._train(progress, monitor, scores_first)
        if engine.chief and monitor.stopped_by == EARLY:
            selection.mark_stopped_early(config.output_dir)
        return Result(
            progress.step,
            monitor.stopped_by,
            progress.seconds,
            progress.state.seen,
            monitor.scores,
            progress.skipped_updates,
            progress.overflows,
            engine.chief,
        )

    def lasting(self, minutes: float, most: int | None = None) -> Trainer:
        """Returns a training of about so many minutes, evaluations included, and of `most` updates.

        The updates that fit are counted by the speed of the first ones, of a model that is thrown away. So
        they are what `train_steps` says, and the length of a schedule that falls to 0.
        """
        began = time.monotonic()
        start, pace = self._seconds_of_updates(min(max(PACE_SECONDS[0], minutes), PACE_SECONDS[1]))
        seconds = (1 - EVALUATION_SHARE) * 60 * minutes - (time.monotonic() - began) - start
        steps = self.engine.all_reduce_max(min(max(2, int(seconds / pace)), most or sys.maxsize))
        return replace(self, hparams=self.hparams.of_length(steps, falls_to_zero(self.hparams)))

    def _seconds_of_updates(self, measured: float) -> tuple[float, float]:
        """Returns the seconds of the first update, which traces the step, and the median of others."""
        engine, ends, due, first = self.engine, [time.monotonic()], 1, 2

        def is_due(updates: int) -> bool:
            return updates >= due

        self._new_model()
        try:
            for _ in engine.steps(self._batches(IteratorState()), is_due):
                ends.append(time.monotonic())
                if due == 1 and len(ends) > 2 and not engine.all_reduce_max(ends[-1] - ends[-2] > 1):
                    due, first = PACE_UPDATES, len(ends) - 1
                if engine.all_reduce_max(len(ends) > first + 3 and ends[-1] - ends[first] > measured):
                    break
        except Exception as error:
            raise engine.translate(error) from None
        finally:
            engine.stop()
            gc.collect()  # the model, which refers to itself
        later = statistics.median(end - begin for begin, end in pairwise(ends[first:]))
        return ends[1] - ends[0], later / due

    def _new_model(self) -> TrainingTransformer:
        """Builds a model with the weights that the seed draws."""
        hparams, engine = self.hparams, self.engine
        set_random_seed(self.config.seed)
        accumulate = accumulation(hparams, engine.replicas)
        with engine.scope():
            model = new_model(self.data, hparams, self.config, accumulate, engine.replicas)
            engine.prepare(model)
        return model

    def _batches(self, start: IteratorState) -> TrainingBatches:
        engine, config, data = self.engine, self.config, self.data
        packed = packs(config, self.hparams, engine.pads_to_bucket)
        if config.packed is None and start.cut:
            packed = is_packed(start)
        settings = BatchSettings(
            engine.replicas,
            accumulation(self.hparams, engine.replicas),
            config.seed,
            pad_to_bucket=engine.pads_to_bucket,
            packed=packed,
        )
        return TrainingBatches(data.shards, self.hparams, settings, start=start, splits=data.splits)

    def _train(self, progress: Progress, monitor: Monitor, scores_first: bool) -> None:
        """Makes updates until the training is over, and saves the last one."""
        engine = self.engine
        try:
            if scores_first:
                monitor.score()
                if monitor.is_over():
                    return
            for updates in engine.steps(progress.batches, monitor.is_due):
                if progress.add(updates):
                    monitor.act()
                if monitor.is_over():
                    break
            monitor.save()
            monitor.wait()
        except Exception as error:
            is_spoilt = isinstance(error, DivergedError) or engine.is_worker_lost(error)
            needs_others = engine.several and self.config.shard_optimizer
            if not (is_spoilt or needs_others):
                with suppress(Exception):  # of a device or disk that has failed, which the first error says
                    progress.add(engine.results())
                    monitor.save()
                    monitor.wait()
            raise engine.translate(error) from None
        finally:
            engine.stop()

    def _resume(self, model: TrainingTransformer) -> TrainingState:
        """Loads the newest valid checkpoint; the chief decides which, and the other workers follow."""
        output_dir = self.config.output_dir
        start = TrainingState()
        if self.engine.chief:
            start = _load_latest(model, output_dir, self.on_event)
        step = self.engine.all_reduce_max(start.step)
        if warm_start := self.config.warm_start:
            unused = [f"weights of {output_dir}, not of {warm_start.folder.path}: the run has begun"]
            for note in unused if step else warm_start.assign_to(model):
                self.on_event(NoteEvent(note))
        if step == start.step:
            return start
        path = output_dir / checkpoints.file_name(step)
        return TrainingState.from_meta(checkpoints.restore(model, path), path)


def new_model(
    data: TrainingData, hparams: HParams, config: RunConfig, accumulate: int, replicas: int
) -> TrainingTransformer:
    """Builds and compiles a model for a training of so many micro-batches and replicas."""
    num_parallel_batches = config.num_parallel_batches if replicas == 1 else 1
    sizes = data.vocab_size, config.precision, num_parallel_batches, data.target_vocab_size
    model = build_model(hparams, *sizes)
    if model.deterministic_attention and data.token_flags is not None:
        model.deterministic_attention.token_flags.assign(data.token_flags)
    return compile_model(model, hparams, accumulate)


def _load_latest(model: TrainingTransformer, output_dir: Path, on_event: OnEvent) -> TrainingState:
    """Loads the newest valid checkpoint, if there are any; corrupt ones are renamed.

    Raises:
        T2TError: none is valid; there is no space for the first ones.
    """
    stored = checkpoints.list_checkpoints(output_dir)
    if not stored:
        _check_space(model, output_dir)
        return TrainingState()
    for checkpoint in reversed(stored):
        try:
            return TrainingState.from_meta(checkpoints.restore(model, checkpoint.path), checkpoint.path)
        except CorruptCheckpointError as error:
            renamed = checkpoints.quarantine(error.path)
            on_event(NoteEvent(f"warning: {error.fault}, renamed to {renamed.name}"))
    raise T2TError(
        f"{output_dir}: all checkpoints are corrupt, and renamed to *{checkpoints.QUARANTINED}: restore a "
        "copy of one, or start the same command again to train from the beginning"
    )


def _check_space(model: TrainingTransformer, output_dir: Path) -> None:
    """Checks the disk: a checkpoint holds weights, moments and averages, and two are there at a time."""
    optimizer = model.optimizer
    averages = [average for _, average in optimizer.moving_averages]
    needed = 2 * sum(4 * math.prod(v.shape) for v in [*model.weights, *optimizer.moments, *averages])
    existing = next(folder for folder in (output_dir, *output_dir.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise T2TError(
            f"{output_dir}: {readable_size(free)} are free, but two checkpoints of this model need "
            f"{readable_size(needed)}: free some space, or give another --output_dir"
        )
