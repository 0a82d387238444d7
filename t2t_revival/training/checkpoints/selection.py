"""Selection of the checkpoint that a model is used with."""

from __future__ import annotations

from pathlib import Path

from t2t_revival.errors import T2TError, similar
from t2t_revival.training.checkpoints import best
from t2t_revival.training.checkpoints.directory import (
    AVERAGED,
    BEST,
    Checkpoint,
    OnDamaged,
    file_name,
    first_valid,
    list_averaged,
    list_checkpoints,
)
from t2t_revival.training.checkpoints.file import MODEL, CheckpointNotFoundError, verify
from t2t_revival.utils.files import path_of

NEWEST, AVERAGE = "newest", "average"
NAMES = (NEWEST, BEST, AVERAGE)
NONE_OF = {  # why a folder has no checkpoint of a name
    NEWEST: "train with t2t-trainer, or give --checkpoint",
    BEST: "t2t-trainer keeps it, with --keep_best, when it evaluates",
    AVERAGE: "t2t-avg-all makes one",
}


def select_checkpoint(
    output_dir: Path, checkpoint: str | None = None, on_damaged: OnDamaged | None = None
) -> Checkpoint:
    """Selects the checkpoint to decode with.

    A training may save and remove checkpoints meanwhile.

    Args:
        output_dir: of the training.
        checkpoint: "newest", "best" or "average"; or a checkpoint's file, with or without ".npz"; or a folder
            of checkpoints to select from instead. `None` selects the newest valid one; at the same step, the
            average; where early stopping ended the training without an average since, the best.
        on_damaged: called with the error of each corrupt checkpoint; `None` calls `warnings.warn`.

    Raises:
        T2TError: there is none.
        CorruptCheckpointError: the given file is corrupt.
        CheckpointNotFoundError: the given file does not exist.
    """
    if checkpoint and checkpoint not in NAMES:
        path = path_of(checkpoint, "checkpoint")
        if not path.is_dir():
            return _open(path, output_dir)
        is_best = path.name == BEST and (path / best.FILE_NAME).exists()
        output_dir, checkpoint = (path.parent, BEST) if is_best else (path, None)
    while True:
        listed = candidates(Path(output_dir), checkpoint)
        if valid := first_valid(listed, 1, on_damaged):
            return valid[0]
        if all(found.path.exists() for found in listed):  # none was removed since it was listed
            kind = {AVERAGE: "average", BEST: "best checkpoint"}.get(checkpoint or NEWEST, "checkpoint")
            raise T2TError(
                f"no {'valid ' if listed else ''}{kind} in {output_dir}: {NONE_OF[checkpoint or NEWEST]}"
            )


def candidates(output_dir: Path, name: str | None) -> list[Checkpoint]:
    """The checkpoints of a name, the first choice first; `None` as in `select_checkpoint`."""
    if name == BEST:
        return best.list_best(output_dir)
    if name == AVERAGE:
        return list_averaged(output_dir)[::-1]
    if name == NEWEST:
        return list_checkpoints(output_dir)[::-1]
    newest_first = sorted(list_checkpoints(output_dir) + list_averaged(output_dir), reverse=True)
    has_average = bool(newest_first) and newest_first[0].averaged
    if not has_average and best.was_stopped_early(output_dir):
        return [*best.list_best(output_dir), *newest_first]
    return newest_first


def _open(path: Path, output_dir: Path) -> Checkpoint:
    for candidate in (path, path.with_name(path.name + ".npz")):
        if candidate.is_file():
            step = verify(candidate, prefixes=(MODEL,))["step"]
            return Checkpoint(step, candidate.parent.name == AVERAGED, candidate)
    raise CheckpointNotFoundError(path, _remedy(path.name.removesuffix(".npz"), output_dir))


def _remedy(name: str, output_dir: Path) -> str:
    """Lists the checkpoints of a folder, and those that a wrong name or a step may mean."""
    listed = {one: found[0].step for one in NAMES if (found := candidates(output_dir, one))}
    if not listed:
        return ""
    files = {checkpoint.path.stem: checkpoint for checkpoint in list_checkpoints(output_dir)}
    steps = ", ".join(str(checkpoint.step) for checkpoint in files.values())
    there = ", ".join(
        [*(f"{one} (step {step})" for one, step in listed.items()), f"files of the steps {steps}"]
    )
    near = similar(Path(file_name(int(name))).stem if name.isdecimal() else name, [*listed, *files])
    meant = [str(files[one].path) if one in files else one for one in near]
    proposal = f"; did you mean {' or '.join(meant)}?" if near else ";"
    return f"{proposal} {output_dir} has {there}"
