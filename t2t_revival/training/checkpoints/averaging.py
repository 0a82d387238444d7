"""Moving averages: one for each checkpoint, of it and those before it (T2T's `t2t-avg-all`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.training.checkpoints.directory import (
    MIXED,
    Checkpoint,
    OnDamaged,
    list_checkpoints,
    write_average,
)
from t2t_revival.training.checkpoints.file import (
    MODEL,
    CheckpointNotFoundError,
    CorruptCheckpointError,
    verify,
    written_at,
)
from t2t_revival.training.run import ANOTHER, Run, check_same, load_hparams, save_run


@dataclass(frozen=True)
class MovingAverage:
    """An average of several checkpoints.

    Attributes:
        step: the newest one's.
        path: its file.
        made: whether it was made by this call, or existed before.
    """

    step: int
    path: Path
    made: bool


def open_folder(folder: Path, model_dir: Path, count: int, mix_data: bool = False) -> None:
    """Writes the files besides checkpoints that make a folder of averages an output_dir of its own.

    Args:
        folder: created if missing.
        model_dir: of the training.
        count: checkpoints of an average.
        mix_data: whether an average may be of checkpoints that were trained on different data.

    Raises:
        T2TError: the folder is the training's own, or holds other checkpoints than such averages of `count`
            of its checkpoints; or it cannot be written.
    """
    if folder.resolve() == model_dir.resolve():
        raise T2TError(
            f"{folder} is the training's own folder, and averages are named as checkpoints: {ANOTHER}"
        )
    for checkpoint in list_checkpoints(folder):
        try:
            meta = verify(checkpoint.path, prefixes=())
        except CorruptCheckpointError:  # is made again
            continue
        averaged = meta.get("averaged")
        if averaged is None:
            raise T2TError(f"{folder} holds {checkpoint.path.name}, which is no average: {ANOTHER}")
        if len(averaged) != count:
            raise T2TError(
                f"{folder} holds averages of {len(averaged)} checkpoints, not of {count}: {ANOTHER}"
            )
        if MIXED in meta.get("data", "") and not mix_data:
            raise T2TError(
                f"{folder} holds {checkpoint.path.name}, an average that mixes training data: {ANOTHER}, or "
                "--mix_data"
            )
    run, hparams = Run.load(model_dir), load_hparams(model_dir)
    check_same(folder, run, hparams)
    vocabulary = model_dir / run.vocabulary
    save_run(folder, run, hparams, vocabulary)
    time = vocabulary.stat().st_mtime_ns
    os.utime(folder / run.vocabulary, ns=(time, time))


def moving_averages(
    checkpoints: Iterable[Checkpoint],
    count: int,
    folder: Path,
    on_damaged: OnDamaged,
    on_gap: Callable[[Checkpoint], None],
    on_other_data: Callable[[Checkpoint, str, str], None] | None = None,
    mix_data: bool = False,
) -> Iterator[MovingAverage]:
    """Writes, for each checkpoint but the first `count` - 1, the average of it and the valid ones before it.

    Where the training data changes, averages begin again with the first checkpoint of the new data, unless
    `mix_data`. An average has the step and the time of its newest checkpoint. A valid one that exists, of the
    same checkpoints, stays as it is.

    Args:
        checkpoints: oldest first.
        count: checkpoints of an average, at least 1.
        folder: of `open_folder`.
        on_damaged: called with the error of each corrupt checkpoint.
        on_gap: called with each checkpoint that has no average since one of its window was removed meanwhile.
        on_other_data: called with each checkpoint that was trained on other data than the one before it, and
            with the fingerprints of both, which are empty for a checkpoint that has none.
        mix_data: whether an average may be of checkpoints that were trained on different data.

    Raises:
        T2TError: checkpoints are of different models, or an average cannot be written.
    """
    window: list[Checkpoint] = []
    before: str | None = None  # fingerprint of the training data of the checkpoint before
    for checkpoint in checkpoints:
        try:
            data = verify(checkpoint.path, prefixes=(MODEL,)).get("data") or ""
        except CorruptCheckpointError as error:
            on_damaged(error)
            continue
        except CheckpointNotFoundError:
            continue
        if before not in (None, data):
            if on_other_data:
                on_other_data(checkpoint, before, data)
            window = window if mix_data else []
        before, window = data, [*window, checkpoint][-count:]
        if len(window) < count:
            continue
        try:
            average = _average(window, folder)
        except CheckpointNotFoundError:
            on_gap(checkpoint)
            continue
        yield average


def _average(window: list[Checkpoint], folder: Path) -> MovingAverage:
    newest = window[-1]
    path, time = folder / newest.path.name, written_at(newest.path)
    if _is_average_of(window, path, time):
        return MovingAverage(newest.step, path, made=False)
    write_average(window, folder)
    os.utime(path, ns=(time, time))
    return MovingAverage(newest.step, path, made=True)


def _is_average_of(window: list[Checkpoint], path: Path, time: int) -> bool:
    if not path.exists() or path.stat().st_mtime_ns != time:
        return False
    try:
        names = verify(path, prefixes=(MODEL,)).get("averaged")
    except CorruptCheckpointError:
        return False
    return names == [member.path.name for member in window]
