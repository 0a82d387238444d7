"""Whether a training has anything left to do; found out without TensorFlow."""

from __future__ import annotations

from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.training.checkpoint_file import DamagedError, GoneError, verify
from t2t_revival.training.checkpoints import list_checkpoints
from t2t_revival.training.curve_files import DEV, has_point


def lacks_evaluation(output_dir: Path, step: int, train_steps: int, eval_frequency: int) -> bool:
    """Whether training stopped between a checkpoint and the evaluation that was to follow it.

    Args:
        output_dir: of the training.
        step: of its newest checkpoint; 0 where there is none.
        train_steps: number of the last update.
        eval_frequency: updates between two evaluations; 0: only the last is followed by one.
    """
    if not 0 < step <= train_steps:
        return False
    due = step == train_steps or bool(eval_frequency and step % eval_frequency == 0)
    return due and not has_point(output_dir, DEV, step)


def nothing_left(output_dir: Path, step: int, train_steps: int) -> T2TError:
    """The error of a training that is at its last step already."""
    return T2TError(
        f"{output_dir} is at step {step} already, and train_steps is {train_steps}: "
        "give a larger --train_steps to go on"
    )


def check_unfinished(output_dir: Path, train_steps: int, eval_frequency: int) -> None:
    """Checks, by the newest checkpoint alone, that there is something left to train or to evaluate.

    Where that checkpoint is damaged nothing is refused: the training falls back to the one before it.

    Raises:
        T2TError: there is not.
    """
    found = list_checkpoints(output_dir)
    if not found or found[-1].step < train_steps:
        return
    step = found[-1].step
    if lacks_evaluation(output_dir, step, train_steps, eval_frequency):
        return
    try:
        verify(found[-1].path)
    except (DamagedError, GoneError):
        return
    raise nothing_left(output_dir, step, train_steps)
