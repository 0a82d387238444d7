"""Section 5: training by Keras's `compile` and `fit`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import keras
import tensorflow as tf

from t2t_revival.data.batching import TrainingBatches
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer
from t2t_revival.training import checkpoints
from t2t_revival.training.curves import DEV, Curves, read_curve
from t2t_revival.training.distribution import accumulation, make_strategy
from t2t_revival.training.loss import TokenCrossEntropy
from t2t_revival.training.optimizer import make_optimizer
from t2t_revival.training.session import Evaluate, Patience, Report, Scores, Session, Settings
from t2t_revival.training.state import Seen, TrainingState

PRECISIONS = ("float32", "mixed_bfloat16")


@dataclass(frozen=True)
class Result:
    """How a training ended.

    Attributes:
        step: updates done.
        stopped_by: None at the end of `train_steps`; else why it stopped before.
        seconds: what this session took.
        seen: data consumed since the first session.
        scores: the last evaluation's.
    """

    step: int
    stopped_by: str | None
    seconds: float
    seen: Seen
    scores: Scores = field(default_factory=dict)


@contextmanager
def precision_policy(precision: str) -> Iterator[None]:
    """Layers made inside compute in `precision`; weights stay float32.

    Raises:
        T2TError: not one of `PRECISIONS`.
    """
    if precision not in PRECISIONS:
        raise T2TError(f"--precision={precision} is not one of {', '.join(PRECISIONS)}")
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def build_model(hparams: HParams, vocab_size: int, precision: str = "float32") -> Transformer:
    """A `Transformer` that computes in `precision`."""
    with precision_policy(precision):
        return Transformer(hparams, vocab_size)


def compile_model(model: Transformer, hparams: HParams, accumulate: int = 1) -> Transformer:
    """Compiles as the trainer does: the paper's loss and optimizer, no XLA.

    Args:
        model: to be compiled.
        hparams: reads `label_smoothing` and what `make_optimizer` reads.
        accumulate: micro-batches of one update.

    Returns:
        The model.
    """
    model.compile(
        optimizer=make_optimizer(hparams, accumulate),
        loss=TokenCrossEntropy(hparams.label_smoothing),
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)
    # Keras builds a loss that it has not seen yet by drawing a batch, and guesses its types wrong for
    # several replicas.
    logits = keras.ops.zeros((1, 1, model.vocab_size))
    model.compute_loss(y=keras.ops.zeros((1, 1), "int32"), y_pred=logits)
    return model


def train(
    shards: list[Path],
    hparams: HParams,
    vocab_size: int,
    settings: Settings,
    evaluate: Evaluate | None = None,
    report: Report | None = None,
) -> Result:
    """Trains until `hparams.train_steps`, going on from the newest checkpoint in `settings.output_dir`.

    SIGINT and SIGTERM save and stop. The last update is followed by an evaluation.

    Args:
        shards: of the training split.
        hparams: what is trained, and how.
        vocab_size: tokens of the vocabulary.
        settings: how it runs.
        evaluate: gives the scores of a model on the dev split, such as {"loss": 1.2, "bleu": 30.0}.
        report: is told each `Step`, `Evaluated` and `Saved`.

    Raises:
        T2TError: nothing is left to do, a shard or checkpoint is damaged or of another model, or output_dir
            cannot be written.
    """
    keras.utils.set_random_seed(settings.seed)
    settings.output_dir.mkdir(parents=True, exist_ok=True)
    strategy = make_strategy(settings.strategy)
    replicas = strategy.num_replicas_in_sync
    accumulate = accumulation(hparams, replicas)
    with strategy.scope():
        model = compile_model(build_model(hparams, vocab_size, settings.precision), hparams, accumulate)
    state = _resume(model, settings.output_dir)
    if state.step >= hparams.train_steps:
        raise T2TError(
            f"{settings.output_dir} is at step {state.step} already, and train_steps is "
            f"{hparams.train_steps}: give a larger --train_steps to go on"
        )
    batches = TrainingBatches(
        shards, hparams, replicas=replicas, accumulate=accumulate, seed=settings.seed, start=state.position
    )
    with Curves(settings.output_dir, state.step) as curves:
        patience = Patience(settings, read_curve(settings.output_dir, DEV))
        session = Session(
            settings, state, batches, accumulate, hparams.train_steps, curves, patience, evaluate, report
        )
        steps = (hparams.train_steps - state.step) * accumulate
        with session.signals():
            _fit(model, batches, steps, session)
            session.save()
    return Result(session.step, session.stopped_by, session.seconds, session.state.seen, session.scores)


def _fit(model: Transformer, batches: TrainingBatches, steps: int, session: Session) -> None:
    try:
        model.fit(
            batches.dataset(), steps_per_epoch=steps, epochs=1, verbose=0, shuffle=False, callbacks=[session]
        )
    except tf.errors.OpError:
        if batches.error is not None:
            raise batches.error from None
        raise


def _resume(model: Transformer, output_dir: Path) -> TrainingState:
    found = checkpoints.list_checkpoints(output_dir)
    if not found:
        _check_space(model, output_dir)
        return TrainingState()
    newest = found[-1]
    return TrainingState.from_meta(checkpoints.restore(model, newest.path), newest.path)


def _check_space(model: Transformer, output_dir: Path) -> None:
    """A checkpoint holds each weight and Adam's two moments, and the next is written beside the last."""
    needed = 2 * 3 * 4 * model.count_params()
    free = shutil.disk_usage(output_dir).free
    if free < needed:
        raise T2TError(
            f"{output_dir}: {free / 1e9:.1f} GB free, and two checkpoints of this model need "
            f"{needed / 1e9:.1f} GB: make room or give another --output_dir"
        )
