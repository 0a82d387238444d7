"""Checks, without TensorFlow, that a training has anything left to do."""

from __future__ import annotations

from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.training.checkpoints.directory import list_checkpoints
from t2t_revival.training.checkpoints.file import CheckpointNotFoundError, CorruptCheckpointError, verify
from t2t_revival.training.curve_files import DEV, has_point


def lacks_evaluation(output_dir: Path, step: int, train_steps: int, eval_frequency: int) -> bool:
    """Returns whether a training stopped between a checkpoint and the evaluation due after it.

    Args:
        output_dir: of the training.
        step: of its newest checkpoint; 0 without any.
        train_steps: number of the last update.
        eval_frequency: updates between two evaluations. With 0 only the last update is evaluated.
    """
    if not 0 < step <= train_steps:
        return False
    due = step == train_steps or bool(eval_frequency and step % eval_frequency == 0)
    return due and not has_point(output_dir, DEV, step)


def nothing_left(output_dir: Path, step: int, train_steps: int) -> T2TError:
    """The error of a training that is already at its last step."""
    return T2TError(
        f"{output_dir} is at step {step} already, and train_steps is {train_steps}: "
        "give a larger --train_steps to train on"
    )


def check_unfinished(output_dir: Path, train_steps: int, eval_frequency: int) -> None:
    """Checks, by the newest checkpoint alone, that there is something left to train or to evaluate.

    A corrupt checkpoint passes: the training will resume from the one before it.

    Raises:
        T2TError: there is nothing.
    """
    checkpoints = list_checkpoints(output_dir)
    if not checkpoints or checkpoints[-1].step < train_steps:
        return
    newest = checkpoints[-1]
    if lacks_evaluation(output_dir, newest.step, train_steps, eval_frequency):
        return
    try:
        verify(newest.path)
    except (CorruptCheckpointError, CheckpointNotFoundError):
        return
    raise nothing_left(output_dir, newest.step, train_steps)
