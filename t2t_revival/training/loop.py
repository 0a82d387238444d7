"""Section 5: training by Keras's `compile` and `fit`."""

from __future__ import annotations

import shutil
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.data.batching import TrainingBatches
from t2t_revival.data.position import Position
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.training import checkpoints
from t2t_revival.training.checkpoint_file import DamagedError
from t2t_revival.training.compiling import build_model, compile_model
from t2t_revival.training.curve_files import DEV, TRAIN, comparable_rows
from t2t_revival.training.curves import Curves
from t2t_revival.training.distribution import accumulation, make_strategy, replica_number
from t2t_revival.training.finished import lacks_evaluation, nothing_left
from t2t_revival.training.lock import only_trainer
from t2t_revival.training.model import TrainingTransformer
from t2t_revival.training.news import Note, Report, Scores
from t2t_revival.training.patience import Patience
from t2t_revival.training.session import Evaluate, Session
from t2t_revival.training.settings import Settings
from t2t_revival.training.state import Fingerprints, Seen, TrainingState
from t2t_revival.training.workers import Workers, lost_worker

ENDLESS = sys.maxsize  # the session says when the last update is done: some may be left out


@dataclass(frozen=True)
class Result:
    """How a training ended.

    Attributes:
        step: updates done.
        stopped_by: None at the end of `train_steps`; else why it stopped before.
        seconds: what this session took.
        seen: data consumed since the first session.
        scores: the last evaluation's.
        left_out: updates since the first session not done because loss or gradients were not finite.
        overflows: updates since the first session not done because scaled gradients overflowed float16.
        chief: whether this process wrote and evaluated; of several workers, one did.
    """

    step: int
    stopped_by: str | None
    seconds: float
    seen: Seen
    scores: Scores = field(default_factory=dict)
    left_out: int = 0
    overflows: int = 0
    chief: bool = True


class Training:
    """A training that is ready to start, or to go on from the newest checkpoint in its output_dir.

    Who makes one holds `only_trainer` of that folder.

    Args:
        shards: of the training split.
        hparams: what is trained, and how.
        vocab_size: tokens of the vocabulary.
        settings: how it runs.
        evaluate: gives the scores of a model on the dev split, such as {"loss": 1.2, "bleu": 30.0}.
        report: is told each `Step`, `Evaluated` and `Saved`.
        word_marks: of the vocabulary; `DeterministicAttention` needs them.
        strategy: what it trains under; None: what `settings` name.
        fingerprints: of the data; early stopping compares scores of equal ones only.

    Attributes:
        start: the step, place and data that it resumes from; the first step is 0.
        workers: that train together.

    Raises:
        T2TError: nothing is left to train or to evaluate, no checkpoint is whole, the newest is of another
            model, XLA is asked for and there are several replicas, the disk is full, or another worker is
            gone. Nothing was written then.
    """

    def __init__(
        self,
        shards: list[Path],
        hparams: HParams,
        vocab_size: int,
        settings: Settings,
        evaluate: Evaluate | None = None,
        report: Report | None = None,
        word_marks: np.ndarray | None = None,
        strategy: tf.distribute.Strategy | None = None,
        fingerprints: Fingerprints | None = None,
    ) -> None:
        strategy = strategy or make_strategy(settings.strategy)
        self.workers = Workers(strategy)
        replicas = strategy.num_replicas_in_sync
        if settings.xla and replicas > 1:
            raise T2TError(
                f"--xla compiles what one device computes, and this training has {replicas}: leave it out, "
                "or give --strategy=default to train on one"
            )
        keras.utils.set_random_seed(settings.seed)
        self._accumulate = accumulation(hparams, replicas)
        with strategy.scope(), self.workers.together():
            streams = settings.streams if replicas == 1 else 1
            model = build_model(hparams, vocab_size, settings.precision, streams)
            if model.deterministic_attention and word_marks is not None:
                model.deterministic_attention.marks.assign(word_marks)
            self._model = compile_model(model, hparams, self._accumulate, settings.xla)
            self._model.several_workers = self.workers.several
            if replicas > 1:
                self._model.replica, self._model.replicas = replica_number, replicas
        self._report = report or (lambda news: None)
        self.start = self._resume(settings.output_dir)
        self._fingerprints = fingerprints or Fingerprints()
        self._hparams = hparams
        self._settings = settings
        self._evaluate = evaluate
        self._unscored = bool(self.workers.largest(self._is_unscored()))
        if self.start.step >= hparams.train_steps and not self._unscored:
            raise nothing_left(settings.output_dir, self.start.step, hparams.train_steps)
        self._batches = TrainingBatches(
            shards,
            hparams,
            replicas=replicas,
            accumulate=self._accumulate,
            seed=settings.seed,
            start=self._first_batch(),
            pad_to_bucket=settings.xla,
        )

    @property
    def note(self) -> str | None:
        """One line where the data cannot go on at the very batch, as after a change of batch_size."""
        return self._batches.note

    @property
    def has_other_data(self) -> bool:
        """Whether the checkpoint that training resumes from was trained on other data."""
        before, now = self.start.data, self._fingerprints.train
        return bool(before and now) and before != now

    def run(self) -> Result:
        """Trains until `hparams.train_steps`; SIGINT and SIGTERM save and stop.

        Raises:
            T2TError: a shard is damaged, too many losses in a row are not finite, memory or disk are full.
                What was learned up to there is saved, if it can be.
        """
        settings = self._settings
        if self.workers.chief:
            settings.output_dir.mkdir(parents=True, exist_ok=True)
            checkpoints.remove_unfinished(settings.output_dir)
        with self._curves() as curves:
            session = Session(
                settings,
                replace(self.start, data=self._fingerprints.train),
                self._batches,
                self._accumulate,
                self._hparams.train_steps,
                curves,
                Patience(settings, self._comparable_evaluations()),
                self._evaluate,
                self._report,
                self.workers,
            )
            with session.signals():
                self._fit(session)
        return Result(
            session.step,
            session.stopped_by,
            session.seconds,
            session.state.seen,
            session.scores,
            session.left_out,
            session.overflows,
            self.workers.chief,
        )

    def _resume(self, output_dir: Path) -> TrainingState:
        """The chief finds where to go on, the others follow."""
        if not self.workers.several:
            return _resume(self._model, output_dir, self._report)
        start = _resume(self._model, output_dir, self._report) if self.workers.chief else TrainingState()
        step = self.workers.largest(start.step)
        if step == start.step:
            return start
        path = output_dir / checkpoints.file_name(step)
        return TrainingState.from_meta(checkpoints.restore(self._model, path), path)

    def _curves(self) -> Curves | AbstractContextManager[None]:
        if self.workers.chief:
            labels = {curve: self._fingerprints.labels(curve) for curve in (TRAIN, DEV)}
            return Curves(self._settings.output_dir, self.start.step, labels)
        return nullcontext()

    def _comparable_evaluations(self) -> list[Scores]:
        """Earlier evaluations on the dev data of now that have the score which early stopping watches."""
        score, labels = self._settings.patience_score, self._fingerprints.labels(DEV)
        return comparable_rows(self._settings.output_dir, DEV, score, labels)

    def _is_unscored(self) -> bool:
        """Whether this process has an evaluation to make up for."""
        if self._evaluate is None or not self.workers.chief:
            return False
        settings = self._settings
        return lacks_evaluation(
            settings.output_dir, self.start.step, self._hparams.train_steps, settings.eval_frequency
        )

    def _first_batch(self) -> Position:
        """The place in the data where training resumes: in other data than before, the beginning."""
        if self.has_other_data:
            return Position(self.start.position.epoch)
        return self.start.position

    def _fit(self, session: Session) -> None:
        session.set_model(self._model)
        try:
            if self._unscored and not session.evaluate_checkpoint():
                return
            self._model.fit(
                self.workers.share(self._batches.dataset()),
                steps_per_epoch=ENDLESS,
                epochs=1,
                verbose=0,
                shuffle=False,
                callbacks=[session],
            )
        except Exception as error:
            cause = self._cause(error)
            session.broken |= self.workers.several and cause is not error
            session.save()
            raise cause from None
        session.save()

    def _cause(self, error: Exception) -> Exception:
        """What a user can do something about, behind what TensorFlow raised."""
        if isinstance(error, tf.errors.ResourceExhaustedError):
            return T2TError("out of memory: lower batch_size, or max_length, in --hparams")
        if isinstance(error, tf.errors.OpError) and self._batches.error is not None:
            return self._batches.error
        return lost_worker(error) if self.workers.several else error


def train(
    shards: list[Path],
    hparams: HParams,
    vocab_size: int,
    settings: Settings,
    evaluate: Evaluate | None = None,
    report: Report | None = None,
) -> Result:
    """Builds a `Training` and runs it, alone in its output_dir.

    Arguments are those of `Training`.

    Raises:
        T2TError: another trainer works in output_dir; and as `Training`.
    """
    strategy = make_strategy(settings.strategy)
    with only_trainer(settings.output_dir) if Workers(strategy).chief else nullcontext():
        training = Training(shards, hparams, vocab_size, settings, evaluate, report, strategy=strategy)
        return training.run()


def _resume(model: TrainingTransformer, output_dir: Path, report: Report) -> TrainingState:
    """Gives `model` the newest whole checkpoint, where there is one; damaged ones are set aside."""
    found = checkpoints.list_checkpoints(output_dir)
    if not found:
        _check_space(model, output_dir)
        return TrainingState()
    for checkpoint in reversed(found):
        try:
            return TrainingState.from_meta(checkpoints.restore(model, checkpoint.path), checkpoint.path)
        except DamagedError as error:
            aside = checkpoints.set_aside(error.path)
            report(Note(f"warning: {error.fault}, renamed to {aside.name}"))
    raise T2TError(
        f"{output_dir}: no checkpoint is whole, and all are renamed to *{checkpoints.SET_ASIDE}: put a copy "
        "of one back, or start the same command again to train from the beginning"
    )


def _check_space(model: TrainingTransformer, output_dir: Path) -> None:
    """A checkpoint holds each weight and Adam's two moments, and the next is written beside the last."""
    needed = 2 * 3 * 4 * model.count_params()
    place = next(folder for folder in (output_dir, *output_dir.absolute().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise T2TError(
            f"{output_dir}: {free / 1e9:.1f} GB free, and two checkpoints of this model need "
            f"{needed / 1e9:.1f} GB: make room or give another --output_dir"
        )
