"""Averages of checkpoints (section 6.1): of the last ones, or of each and those before it (`t2t-avg-all`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from t2t_revival.checkpoints import directory, file
from t2t_revival.checkpoints.directory import ANOTHER, BEST, MIXED, Checkpoint, OnDamaged, write_average
from t2t_revival.checkpoints.selection import NONE_OF, list_best
from t2t_revival.errors import T2TError
from t2t_revival.utils.made_of import MadeOf

UNKNOWN = "unknown"  # in messages, instead of a fingerprint of data


@dataclass(frozen=True)
class MovingAverage:
    """An average of several checkpoints, with the step of the newest."""

    step: int
    path: Path
    made: bool  # by this call; else it existed before


def check_averages(folder: Path, model_dir: Path, count: int, mix_data: bool = False) -> None:
    """Checks that a folder has no checkpoints but averages of `count`, on different data only if `mix_data`.

    Raises:
        T2TError: it has, or is `model_dir`, the training's own folder.
    """
    if folder.resolve() == model_dir.resolve():
        raise T2TError(
            f"{folder} is the training's own folder, whose checkpoints averages would overwrite: {ANOTHER}"
        )
    for checkpoint in directory.list_checkpoints(folder):
        try:
            meta = file.verify(checkpoint.path, prefixes=())
        except file.CorruptCheckpointError:  # is made again
            continue
        averaged = MadeOf({"checkpoints averaged": len(meta.get("averaged", ()))})
        holds = f"{folder} holds {checkpoint.path.name} with"
        averaged.check(MadeOf({"checkpoints averaged": count}), holds, ANOTHER)
        if MIXED in meta.get("data", "") and not mix_data:
            raise T2TError(
                f"{folder} holds {checkpoint.path.name}, an average that mixes training data: {ANOTHER}, or "
                "--mix_data"
            )


def sliding_averages(
    checkpoints: Iterable[Checkpoint],
    count: int,
    folder: Path,
    on_damaged: Callable[[file.CorruptCheckpointError], None],
    on_note: Callable[[str], None],
    mix_data: bool = False,
) -> Iterator[MovingAverage]:
    """Writes, for each checkpoint but the first `count` - 1, the average of it and the valid ones before it.

    Where the training data changes, averages begin again with the first checkpoint of the new data, unless
    `mix_data`. An average has the step and the time of its newest checkpoint. A valid one that exists, of the
    same checkpoints, stays as it is.

    Args:
        checkpoints: oldest first.
        count: checkpoints of an average, at least 1.
        folder: of the averages.
        on_damaged: called with the error of each corrupt checkpoint.
        on_note: called with a line for people on each checkpoint that was trained on other data than the one
            before it, or that has no average since one of its window was removed meanwhile.
        mix_data: whether an average may be of checkpoints that were trained on different data.

    Raises:
        T2TError: checkpoints are of different models, or an average cannot be written.
    """
    window: list[Checkpoint] = []
    before: str | None = None  # fingerprint of the training data of the checkpoint before
    for checkpoint in checkpoints:
        try:
            data = file.verify(checkpoint.path, prefixes=(file.MODEL,)).get("data") or ""
        except file.CorruptCheckpointError as error:
            on_damaged(error)
            continue
        except file.CheckpointNotFoundError:
            continue
        if before not in (None, data):
            then = "averages mix them" if mix_data else "averages begin again here; --mix_data mixes them"
            change = f"{_data_change(bool(before and data))} than the one before it"
            data_of_both = f"{before or UNKNOWN} -> {data or UNKNOWN}"
            on_note(f"warning: step {checkpoint.step} {change} ({data_of_both}): {then}")
            window = window if mix_data else []
        before, window = data, [*window, checkpoint][-count:]
        if len(window) < count:
            continue
        try:
            average = _average(window, folder)
        except file.CheckpointNotFoundError:
            on_note(
                f"warning: step {checkpoint.step} has no average, since the training has removed one of its "
                "checkpoints: give t2t-trainer a larger --keep_checkpoint_max"
            )
            continue
        yield average


def _average(window: list[Checkpoint], folder: Path) -> MovingAverage:
    """Writes an average, unless a valid one of the same checkpoints is there."""
    newest = window[-1]
    path, time = folder / newest.path.name, file.written_at(newest.path)
    names, is_same = [member.path.name for member in window], False
    if path.exists() and path.stat().st_mtime_ns == time:
        with suppress(file.CorruptCheckpointError):
            is_same = file.verify(path, prefixes=(file.MODEL,)).get("averaged") == names
    if not is_same:
        write_average(window, folder)
        os.utime(path, ns=(time, time))
    return MovingAverage(newest.step, path, made=not is_same)


def average_latest(
    output_dir: Path,
    count: int,
    min_steps: int = 0,
    mix_data: bool = False,
    on_damaged: OnDamaged | None = None,
    on_note: Callable[[str], None] = lambda note: None,
    of_best: bool = False,
) -> tuple[Path, list[int]]:
    """Averages the last checkpoints of a training, which may be running.

    Returns the average's file, in the folder `averaged`, and the steps of its checkpoints.

    Args:
        output_dir: of the training.
        count: checkpoints at most.
        min_steps: checkpoints of fewer steps are skipped.
        mix_data: whether checkpoints from before a change of the training data are averaged too.
        on_damaged: called with the error of each corrupt or removed checkpoint; `None` warns.
        on_note: called with a line for people on checkpoints that are left out or mixed.
        of_best: whether the best ones, of those that it kept for that, are averaged instead of the last; the
            average is in the folder `best/averaged` then, which no command uses by default.

    Raises:
        T2TError: there is no valid checkpoint, or they are of different models.
    """
    while True:
        listed = list_best(output_dir)[:count] if of_best else directory.list_checkpoints(output_dir)
        wanted = [checkpoint for checkpoint in listed if checkpoint.step >= min_steps]
        valid = directory.first_valid(sorted(wanted, reverse=True), count, on_damaged)[::-1]
        if not valid:
            kind = "best " if of_best else "valid " if wanted else ""
            since = f" from step {min_steps} on" if min_steps else ""
            remedy = NONE_OF[BEST] if of_best else "train with t2t-trainer"
            raise T2TError(f"no {kind}checkpoint in {output_dir}{since}: {remedy}")
        try:
            chosen = _select_by_data(valid, mix_data, on_note)
            path = write_average(chosen, (output_dir / BEST if of_best else output_dir) / directory.AVERAGED)
            return path, [checkpoint.step for checkpoint in chosen]
        except file.CheckpointNotFoundError:
            on_note("the training has removed a checkpoint meanwhile: trying again")


def _data_change(known: bool) -> str:
    """A predicate for messages on changed training data, which checkpoints on both sides name if `known`."""
    return "was trained on other data" if known else "may have been trained on other data"


def _select_by_data(
    valid: list[Checkpoint], mix_data: bool, on_note: Callable[[str], None]
) -> list[Checkpoint]:
    """The checkpoints of the newest's training data; with `mix_data` all of them."""
    groups = [list(group) for _, group in groupby(valid, lambda checkpoint: file.trained_on(checkpoint.path))]
    data = file.trained_on(valid[-1].path)
    if len(groups) == 1:
        if not data and len(valid) > 1:
            on_note("warning: these checkpoints do not name their training data: assumed to be the same")
        return valid
    if mix_data:
        on_note(f"warning: this average mixes training data: {_describe(groups)}")
        return valid
    change = _data_change(all(file.trained_on(group[0].path) for group in groups))
    on_note(
        f"left out, since step {valid[-1].step} {change} ({data or UNKNOWN}): {_describe(groups[:-1])}; "
        "--mix_data averages them too"
    )
    return groups[-1]


def _describe(groups: list[list[Checkpoint]]) -> str:
    """Steps and fingerprint of each group of checkpoints of the same training data."""
    return ", ".join(
        f"step{'s' if len(group) > 1 else ''} {', '.join(str(checkpoint.step) for checkpoint in group)} "
        f"({file.trained_on(group[0].path) or UNKNOWN})"
        for group in groups
    )
