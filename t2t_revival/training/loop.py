"""A training: from the newest checkpoint to the last update (section 5)."""

from __future__ import annotations

import math
import shutil
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from t2t_revival.checkpoints import best
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import CorruptCheckpointError
from t2t_revival.curve_files import DEV, TRAIN, comparable_rows
from t2t_revival.data.batching import TrainingBatches
from t2t_revival.data.iterator_state import IteratorState
from t2t_revival.data.records import SplitData
from t2t_revival.data.vocabulary.splits import Splits
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.training.callback import DivergedError, Evaluate, Reporter, TrainingCallback
from t2t_revival.training.checkpoint_saver import CheckpointSaver
from t2t_revival.training.compile import build_model, compile_model
from t2t_revival.training.curves import Curves
from t2t_revival.training.engines.engine import Engine, accumulation, make_engine
from t2t_revival.training.events import NoteEvent, OnEvent, Scores, ignore_event
from t2t_revival.training.model import TrainingTransformer
from t2t_revival.training.run import lacks_evaluation, nothing_left
from t2t_revival.training.run_config import RunConfig
from t2t_revival.training.state import Fingerprints, Seen, TrainingProgress, TrainingState
from t2t_revival.training.stopping import EARLY, EarlyStopping, Stopping
from t2t_revival.utils.keras_hooks import set_random_seed
from t2t_revival.utils.sizes import readable_size


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


class Training:
    """A training that is ready to start, or to resume from the newest checkpoint in its output_dir.

    The caller must hold the `output_dir_lock` of that folder.

    Args:
        data: training data.
        hparams: of model and optimizer.
        config: of the run.
        evaluate: called with the model; returns its scores on the dev split, such as {"loss": 1.2}. `None`
            leaves evaluations out.
        on_event: called with each event.
        engine: devices; `None` makes that of `config` and Keras's backend.

    Attributes:
        start: state that it resumes from; that of step 0 without a checkpoint.

    Raises:
        T2TError: nothing is left to train or to evaluate, no checkpoint is valid, the newest is of another
            model, the disk is full, or another worker is gone; and as the engine. Nothing was written then.
    """

    def __init__(
        self,
        data: TrainingData,
        hparams: HParams,
        config: RunConfig,
        evaluate: Evaluate | None = None,
        on_event: OnEvent = ignore_event,
        engine: Engine | None = None,
    ) -> None:
        self._data, self._hparams, self._config = data, hparams, config
        self._evaluate, self._on_event = evaluate, on_event
        self._engine = engine = engine or make_engine(config)
        set_random_seed(config.seed)
        self._accumulate = accumulation(hparams, engine.replicas)
        with engine.scope():
            self._model = self._build_model(engine.replicas)
            engine.prepare(self._model)
        self.start = self._resume()
        self._evaluates_start = bool(engine.all_reduce_max(self._lacks_evaluation()))
        if self.start.step >= hparams.train_steps and not self._evaluates_start:
            raise nothing_left(config.output_dir, self.start.step, hparams.train_steps)
        self._batches = TrainingBatches(
            data.shards,
            hparams,
            replicas=engine.replicas,
            accumulate=self._accumulate,
            seed=config.seed,
            start=IteratorState(self.start.position.epoch) if self.has_other_data else self.start.position,
            pad_to_bucket=engine.pads_to_bucket,
            splits=data.splits,
            num_buckets=config.num_buckets,
        )

    def _build_model(self, replicas: int) -> TrainingTransformer:
        return new_model(self._data, self._hparams, self._config, self._accumulate, replicas)

    def _resume(self) -> TrainingState:
        """Loads the newest valid checkpoint; the chief decides which, and the other workers follow."""
        output_dir = self._config.output_dir
        start = TrainingState()
        if self._engine.chief:
            start = _load_latest(self._model, output_dir, self._on_event)
        step = self._engine.all_reduce_max(start.step)
        if warm_start := self._config.warm_start:
            unused = [f"weights of {output_dir}, not of {warm_start.output_dir}: the run has begun"]
            for note in unused if step else warm_start.assign_to(self._model):
                self._on_event(NoteEvent(note))
        if step == start.step:
            return start
        path = output_dir / checkpoints.file_name(step)
        return TrainingState.from_meta(checkpoints.restore(self._model, path), path)

    def _lacks_evaluation(self) -> bool:
        """Returns whether this process must evaluate the checkpoint before it trains."""
        if self._evaluate is None or not self._engine.chief:
            return False
        config, train_steps = self._config, self._hparams.train_steps
        return lacks_evaluation(config.output_dir, self.start.step, train_steps, config.eval_frequency)

    @property
    def note(self) -> str | None:
        """One line for the user if training cannot resume at the very batch, as after another batch_size."""
        return self._batches.note

    @property
    def has_other_data(self) -> bool:
        """True if the checkpoint that training resumes from was trained on other data."""
        before, now = self.start.data, self._data.fingerprints.train
        return bool(before and now) and before != now

    def run(self) -> Result:
        """Trains until `hparams.train_steps`; SIGINT and SIGTERM save and stop.

        Raises:
            T2TError: a shard is corrupt, too many losses in a row are not finite, memory or disk are full.
                The last update is saved then, if it can be.
        """
        config = self._config
        if self._engine.chief:
            config.output_dir.mkdir(parents=True, exist_ok=True)
            checkpoints.remove_unfinished(config.output_dir)
            best.mark_stopped_early(config.output_dir, stopped=False)
        fingerprints, chief = self._data.fingerprints, self._engine.chief
        labels = {curve: fingerprints.labels(curve) for curve in (TRAIN, DEV)}
        start = replace(self.start, data=fingerprints.train)
        with Curves(config.output_dir, start.step, labels) if chief else nullcontext() as curves:
            progress = TrainingProgress(start, self._batches, self._accumulate, self._hparams.train_steps)
            saver = CheckpointSaver(config, self._model, progress, self._on_event, chief, labels[DEV])
            reporter = Reporter(progress, curves, self._on_event)
            history = comparable_rows(config.output_dir, DEV, config.patience_score, labels[DEV])
            stopping = Stopping(EarlyStopping(config, history), self._engine)
            evaluate = self._evaluate if chief else None
            callback = TrainingCallback(config, progress, reporter, saver, evaluate, stopping, self._engine)
            with stopping.handle_signals():
                self._fit(callback, saver)
        if chief and stopping.reason == EARLY:
            best.mark_stopped_early(config.output_dir)
        return Result(
            progress.step,
            stopping.reason,
            progress.seconds,
            progress.state.seen,
            callback.scores,
            progress.skipped_updates,
            progress.overflows,
            chief,
        )

    def _fit(self, callback: TrainingCallback, saver: CheckpointSaver) -> None:
        """Trains, and saves the last update, also after an error unless the weights may be spoilt."""
        engine = self._engine
        try:
            if self._evaluates_start and not callback.evaluate_first():
                return
            engine.start(self._batches)
            while not callback.is_over:
                callback.on_step(engine.step())
            engine.synchronize()
            saver.save()
            saver.wait()
        except Exception as error:
            spoilt = engine.is_worker_lost(error) or isinstance(error, DivergedError)
            if not spoilt and self._catch_up(callback):
                saver.save()
                saver.wait()
            raise engine.translate(error) from None
        finally:
            engine.stop()
            saver.close()

    def _catch_up(self, callback: TrainingCallback) -> bool:
        """Counts the updates before an error, and returns whether the model has them."""
        if self._engine.several and self._config.shard_optimizer:
            return False  # other processes would have to take part
        try:
            callback.count()
            self._engine.synchronize()
        except Exception:  # of a device that has failed, which the first error says
            return False
        return True


def new_model(
    data: TrainingData, hparams: HParams, config: RunConfig, accumulate: int, replicas: int
) -> TrainingTransformer:
    """Builds and compiles a model for a training of so many micro-batches and replicas."""
    num_parallel_batches = config.num_parallel_batches if replicas == 1 else 1
    sizes = data.vocab_size, config.precision, num_parallel_batches, data.target_vocab_size
    model = build_model(hparams, *sizes)
    if model.deterministic_attention and data.token_flags is not None:
        model.deterministic_attention.token_flags.assign(data.token_flags)
    return compile_model(model, hparams, accumulate, config.xla)


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
    """Checks the disk: a checkpoint holds weights, moments and averages, and two are there at a time.

    Raises:
        T2TError: there is too little space.
    """
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
