"""The best checkpoints of a training by a dev score, which stay when newer ones take their place.

best/model.ckpt-STEP.npz    hard links where the file system has them, which need no space, else copies
best/best.json              score, values by step, and whether early stopping ended the training
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_revival.checkpoints.directory import (
    BEST,
    Checkpoint,
    file_name,
    in_folder,
    list_checkpoints,
)
from t2t_revival.errors import T2TError
from t2t_revival.metrics.metric import metric_of
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import atomic_write, temporary_name, writing

FILE_NAME = "best.json"
AGAIN = "remove it: t2t-trainer writes it again after its next evaluation"


def list_best(output_dir: Path) -> list[Checkpoint]:
    """The checkpoints that a training kept as its best, best first.

    Raises:
        T2TError: best.json is corrupt.
    """
    folder = Path(output_dir) / BEST
    found = {checkpoint.step: checkpoint for checkpoint in in_folder(folder, averaged=False)}
    ranked = (int(step) for step in _record(folder).get("values", {}))
    return [found[step] for step in ranked if step in found]


def was_stopped_early(output_dir: Path) -> bool:
    """Returns whether early stopping ended the training, so that its best checkpoint is the one to use.

    Raises:
        T2TError: best.json is corrupt.
    """
    return bool(_record(Path(output_dir) / BEST).get("stopped_early"))


def best_value(output_dir: Path) -> tuple[str, float, Path] | None:
    """The score by which the best checkpoint was chosen, its value and the file; `None` without any.

    Raises:
        T2TError: best.json is corrupt.
    """
    kept, record = list_best(output_dir), _record(Path(output_dir) / BEST)
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

    Raises:
        T2TError: one cannot be copied.
    """
    folder = output_dir / BEST
    newest = {checkpoint.step for checkpoint in list_checkpoints(output_dir)}
    held = {checkpoint.step for checkpoint in in_folder(folder, averaged=False)}
    candidates = [step for step in sorted(newest | held) if math.isfinite(scores.get(step, math.nan))]
    rank = metric_of(score).rank
    kept = sorted(candidates, key=lambda step: (rank(scores[step]), -step))[:count]
    if kept or held:
        with writing(f"to {folder}", "make room, or give --keep_best=0"):
            folder.mkdir(exist_ok=True)
            for step in newest.intersection(kept):
                _link(output_dir / file_name(step), folder / file_name(step))
            record = {"score": score, "values": {str(step): scores[step] for step in kept}}
            checked_json.save(folder / FILE_NAME, record)
    for step in held.difference(kept):
        (folder / file_name(step)).unlink(missing_ok=True)
    return kept[0] if kept else None


def set_aside(output_dir: Path, scores: Mapping[int, float]) -> Path | None:
    """Renames the folder of the best where they were evaluated on other data, or in another way.

    Args:
        output_dir: of the training.
        scores: of the evaluations that can be compared with the last, by step.

    Returns:
        The new folder, or `None` if the best can be compared.

    Raises:
        T2TError: the folder cannot be renamed.
    """
    folder, last = output_dir / BEST, max(scores)
    steps = [kept.step for kept in in_folder(folder, averaged=False) if kept.step < last]
    if not steps or not scores.keys().isdisjoint(steps):
        return None
    aside = output_dir / f"{BEST}.until-{max(steps)}"
    with writing(f"to {aside}", "rename or remove it"):
        return folder.rename(aside)


def mark_stopped_early(output_dir: Path, stopped: bool = True) -> None:
    """Makes the best checkpoint the one that commands use by default, or no longer; raises as `keep_best`."""
    folder = output_dir / BEST
    if was_stopped_early(output_dir) != stopped and list_best(output_dir):
        with writing(f"to {folder}"):
            checked_json.save(folder / FILE_NAME, {**_record(folder), "stopped_early": stopped})


def _record(folder: Path) -> dict[str, Any]:
    """Reads best.json; an empty object if there is none."""
    path = folder / FILE_NAME
    if not path.exists():
        return {}
    record = checked_json.load(path, AGAIN)
    values = record.get("values")
    are_numbers = isinstance(values, dict) and all(
        step.isdecimal() and isinstance(value, int | float) for step, value in values.items()
    )
    if not (are_numbers and isinstance(record.get("score"), str)):
        raise T2TError(f"{path}: corrupt, not a score and its values by step; {AGAIN}")
    return record


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
