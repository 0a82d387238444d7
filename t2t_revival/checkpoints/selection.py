"""Selection of the checkpoint that a model is used with; and the best of a training by a dev score.

The best stay when newer ones take their place:

best/model.ckpt-STEP.npz    hard links where the file system has them, which need no space, else copies
best/best.json              score, values by step, and whether early stopping ended the training

All functions raise `T2TError` where best.json is corrupt, or a file cannot be written.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from t2t_revival.checkpoints import directory
from t2t_revival.checkpoints.file import MODEL, CheckpointNotFoundError, verify
from t2t_revival.errors import T2TError, similar
from t2t_revival.metrics.metric import metric_of
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import atomic_write, path_of, temporary_name, writing

T = TypeVar("T")
NEWEST, AVERAGE = "newest", "average"
NAMES = (NEWEST, directory.BEST, AVERAGE)
NONE_OF = {  # why a folder has no checkpoint of a name
    NEWEST: "train with t2t-trainer, or give --checkpoint",
    directory.BEST: "t2t-trainer keeps it, with --keep_best, when it evaluates",
    AVERAGE: "t2t-avg-all makes one",
}
WORSE = "worse.json"  # in the folder of averages: the steps of those that are no default
FILE_NAME = "best.json"
AGAIN = "remove it: t2t-trainer writes it again after its next evaluation"


def list_best(output_dir: Path) -> list[directory.Checkpoint]:
    """The checkpoints that a training kept as its best, best first."""
    folder = Path(output_dir) / directory.BEST
    found = {checkpoint.step: checkpoint for checkpoint in directory.in_folder(folder, averaged=False)}
    ranked = (int(step) for step in _record(folder).get("values", {}))
    return [found[step] for step in ranked if step in found]


def was_stopped_early(output_dir: Path) -> bool:
    """Returns whether early stopping ended the training, so that its best checkpoint is the one to use."""
    return bool(_record(Path(output_dir) / directory.BEST).get("stopped_early"))


def best_value(output_dir: Path) -> tuple[str, float, Path] | None:
    """The score by which the best checkpoint was chosen, its value and the file; `None` without any."""
    kept, record = list_best(output_dir), _record(Path(output_dir) / directory.BEST)
    if not kept:
        return None
    return record["score"], record["values"][str(kept[0].step)], kept[0].path


def keep_best(output_dir: Path, scores: Mapping[int, float], score: str, count: int) -> int | None:
    """Keeps the best of the checkpoints that still exist, and removes those that are no longer among them.

    Of two with the same value the later one is better: it was trained for longer.

    Args:
        output_dir: of the training.
        scores: of the evaluations that can be compared, by step.
        score: such as "bleu".
        count: checkpoints to keep.

    Returns:
        The step of the best; `None` if none is kept.
    """
    folder = output_dir / directory.BEST
    newest = {checkpoint.step for checkpoint in directory.list_checkpoints(output_dir)}
    held = {checkpoint.step for checkpoint in directory.in_folder(folder, averaged=False)}
    candidates = [step for step in sorted(newest | held) if math.isfinite(scores.get(step, math.nan))]
    rank = metric_of(score).rank
    kept = sorted(candidates, key=lambda step: (rank(scores[step]), -step))[:count]
    if kept or held:
        with writing(f"to {folder}", "make room, or give --keep_best=0"):
            folder.mkdir(exist_ok=True)
            for step in newest.intersection(kept):
                _link(output_dir / directory.file_name(step), folder / directory.file_name(step))
            record = {"score": score, "values": {str(step): scores[step] for step in kept}}
            checked_json.save(folder / FILE_NAME, record)
    for step in held.difference(kept):
        (folder / directory.file_name(step)).unlink(missing_ok=True)
    return kept[0] if kept else None


def set_aside(output_dir: Path, scores: Mapping[int, float]) -> Path | None:
    """Renames the folder of the best where they were evaluated on other data, or in another way.

    Args:
        output_dir: of the training.
        scores: of the evaluations that can be compared with the last, by step.

    Returns:
        The new folder, or `None` if the best can be compared.
    """
    folder, last = output_dir / directory.BEST, max(scores)
    steps = [kept.step for kept in directory.in_folder(folder, averaged=False) if kept.step < last]
    if not steps or not scores.keys().isdisjoint(steps):
        return None
    aside = output_dir / f"{directory.BEST}.until-{max(steps)}"
    with writing(f"to {aside}", "rename or remove it"):
        return folder.rename(aside)


def mark_stopped_early(output_dir: Path, stopped: bool = True) -> None:
    """Makes the best checkpoint the one that commands use by default, or no longer."""
    folder = output_dir / directory.BEST
    if was_stopped_early(output_dir) != stopped and list_best(output_dir):
        with writing(f"to {folder}"):
            checked_json.save(folder / FILE_NAME, {**_record(folder), "stopped_early": stopped})


def _record(folder: Path) -> dict[str, Any]:
    """Reads best.json; an empty object if there is none."""
    path = folder / FILE_NAME
    return checked_json.load(path, AGAIN) if path.exists() else {}


def _link(path: Path, kept: Path) -> None:
    """Makes `kept` the same file as `path`, or a copy of it, completely or not at all."""
    if kept.exists():
        old, new = kept.stat(), path.stat()
        if old.st_size == new.st_size and old.st_mtime_ns >= new.st_mtime_ns:
            return
    temporary = temporary_name(kept)
    temporary.unlink(missing_ok=True)
    try:
        os.link(path, temporary)
    except OSError:  # a file system without hard links
        with atomic_write(kept) as file, path.open("rb") as whole:
            shutil.copyfileobj(whole, file)
    else:
        temporary.replace(kept)


def select_checkpoint(
    output_dir: Path, checkpoint: str | None = None, on_damaged: directory.OnDamaged | None = None
) -> directory.Checkpoint:
    """Selects the checkpoint to decode with.

    A training may save and remove checkpoints meanwhile.

    Args:
        output_dir: of the training.
        checkpoint: "newest", "best" or "average"; or a checkpoint's file, with or without ".npz"; or a folder
            of checkpoints to select from instead. `None` selects the newest valid one; at the same step, the
            average, unless it scored worse; where early stopping ended the training, or the best scored best,
            without an average since, the best.
        on_damaged: called with the error of each corrupt or removed checkpoint; `None` calls `warnings.warn`.

    Raises:
        T2TError: there is none.
        CorruptCheckpointError: the given file is corrupt.
        CheckpointNotFoundError: the given file does not exist.
    """
    if checkpoint and checkpoint not in NAMES:
        path = path_of(checkpoint, "checkpoint")
        if not path.is_dir():
            return _open(path, output_dir)
        is_best = path.name == directory.BEST and (path / FILE_NAME).exists()
        output_dir, checkpoint = (path.parent, directory.BEST) if is_best else (path, None)
    while True:
        listed = candidates(Path(output_dir), checkpoint)
        if valid := directory.first_valid(listed, 1, on_damaged):
            return valid[0]
        if all(os.path.lexists(found.path) for found in listed):  # none was removed since it was listed
            name = checkpoint or NEWEST
            kind = {AVERAGE: "average", directory.BEST: "best checkpoint"}.get(name, "checkpoint")
            raise T2TError(f"no {'valid ' if listed else ''}{kind} in {output_dir}: {NONE_OF[name]}")


def taking_next(
    read: Callable[[], T], checkpoint: str | None = None, on_removed: directory.OnDamaged | None = None
) -> T:
    """Calls a function that selects and reads checkpoints; again where one was removed in between.

    Args:
        read: selects with `select_checkpoint`, and reads what it selected.
        checkpoint: as in `select_checkpoint`; there is no other one for a file.
        on_removed: called with the error of each removed one; `None` calls `warnings.warn`.

    Raises:
        CheckpointNotFoundError: `checkpoint` is a file, and does not exist.
    """
    is_file = checkpoint and checkpoint not in NAMES and not Path(checkpoint).expanduser().is_dir()
    while True:
        try:
            return read()
        except CheckpointNotFoundError as error:
            if is_file or os.path.lexists(error.path):
                raise
            (on_removed or directory.warn)(error)


def candidates(output_dir: Path, name: str | None) -> list[directory.Checkpoint]:
    """The checkpoints of a name, the first choice first; `None` as in `select_checkpoint`."""
    if name == directory.BEST:
        return list_best(output_dir)
    if name == AVERAGE:
        return directory.list_averaged(output_dir)[::-1]
    if name == NEWEST:
        return directory.list_checkpoints(output_dir)[::-1]
    worse = _worse(output_dir)
    averages = [average for average in directory.list_averaged(output_dir) if average.step not in worse]
    newest_first = sorted(directory.list_checkpoints(output_dir) + averages, reverse=True)
    has_average = bool(newest_first) and newest_first[0].averaged
    if not has_average and was_stopped_early(output_dir):
        return [*list_best(output_dir), *newest_first]
    return newest_first


def mark_average(output_dir: Path, step: int, is_worse: bool) -> None:
    """Makes an average no default of `select_checkpoint`, or a default again.

    Raises:
        T2TError: the mark cannot be written, or is corrupt.
    """
    before = _worse(output_dir)
    steps = before | {step} if is_worse else before - {step}
    path = output_dir / directory.AVERAGED / WORSE
    with writing(f"to {path}"):
        if steps:
            checked_json.save(path, {"steps": sorted(steps)})
        else:
            path.unlink(missing_ok=True)


def _worse(output_dir: Path) -> set[int]:
    """Returns the steps of the averages that scored worse than a checkpoint."""
    path = output_dir / directory.AVERAGED / WORSE
    if not path.exists():
        return set()
    return set(checked_json.load(path, "remove it, and run t2t-avg-all again")["steps"])


def _open(path: Path, output_dir: Path) -> directory.Checkpoint:
    for candidate in (path, path.with_name(path.name + ".npz")):
        if candidate.is_file():
            step = verify(candidate, prefixes=(MODEL,))["step"]
            return directory.Checkpoint(step, candidate.parent.name == directory.AVERAGED, candidate)
    raise CheckpointNotFoundError(path, _remedy(path.name.removesuffix(".npz"), output_dir))


def _remedy(name: str, output_dir: Path) -> str:
    """Lists the checkpoints of a folder, and those that a wrong name or a step may mean."""
    listed = {one: found[0].step for one in NAMES if (found := candidates(output_dir, one))}
    if not listed:
        return ""
    files = {checkpoint.path.stem: checkpoint for checkpoint in directory.list_checkpoints(output_dir)}
    steps = ", ".join(str(checkpoint.step) for checkpoint in files.values())
    there = ", ".join(
        [*(f"{one} (step {step})" for one, step in listed.items()), f"files of the steps {steps}"]
    )
    near = similar(Path(directory.file_name(int(name))).stem if name.isdecimal() else name, [*listed, *files])
    meant = [str(files[one].path) if one in files else one for one in near]
    proposal = f"; did you mean {' or '.join(meant)}?" if near else ";"
    return f"{proposal} {output_dir} has {there}"
