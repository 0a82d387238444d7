"""The average of the last checkpoints of a training (section 6.1 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.training.checkpoints import directory
from t2t_revival.training.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.training.checkpoints.file import CheckpointNotFoundError, trained_on
from t2t_revival.training.run import load_hparams

UNKNOWN = "unknown"  # in messages, instead of a fingerprint of data


@dataclass(frozen=True)
class LatestAverage:
    """An average of the last checkpoints.

    Attributes:
        path: its file, in the folder `averaged` of the training.
        steps: of the checkpoints that it averages.
    """

    path: Path
    steps: list[int]


def average_latest(
    output_dir: Path,
    count: int | None = None,
    min_steps: int = 0,
    mix_data: bool = False,
    on_damaged: OnDamaged | None = None,
    on_note: Callable[[str], None] = lambda note: None,
) -> LatestAverage:
    """Averages the last checkpoints of a training, which may be running.

    Args:
        output_dir: of the training.
        count: checkpoints at most; `None` takes `average_checkpoints` of its hparams.
        min_steps: checkpoints of fewer steps are skipped.
        mix_data: whether checkpoints from before a change of the training data are averaged too.
        on_damaged: called with the fault of each corrupt checkpoint; `None` warns.
        on_note: called with a line for people on checkpoints that are left out or mixed.

    Raises:
        T2TError: there is no valid checkpoint, or they are of different models.
    """
    count = count or load_hparams(output_dir).average_checkpoints
    while True:
        listed = directory.list_checkpoints(output_dir)
        wanted = [checkpoint for checkpoint in listed if checkpoint.step >= min_steps]
        valid = directory.latest_valid(wanted, count, on_damaged)
        if not valid:
            raise T2TError(
                f"no {'valid ' if wanted else ''}checkpoint in {output_dir}"
                + (f" from step {min_steps} on" if min_steps else "")
                + ": train with t2t-trainer"
            )
        try:
            chosen = _select_by_data(valid, mix_data, on_note)
            path = directory.average(chosen, output_dir).path
            return LatestAverage(path, [checkpoint.step for checkpoint in chosen])
        except CheckpointNotFoundError:
            on_note("the training has removed a checkpoint meanwhile: trying again")


def data_change(known: bool) -> str:
    """A predicate for messages on a checkpoint before which the training data changed.

    Args:
        known: whether the checkpoints on both sides name their training data.
    """
    return "was trained on other data" if known else "may have been trained on other data"


def _select_by_data(
    valid: list[Checkpoint], mix_data: bool, on_note: Callable[[str], None]
) -> list[Checkpoint]:
    """The checkpoints of the newest's training data; with `mix_data` all of them."""
    groups = directory.split_by_data(valid)
    data = trained_on(valid[-1].path)
    if len(groups) == 1:
        if not data and len(valid) > 1:
            on_note("warning: these checkpoints do not name their training data: assumed to be the same")
        return valid
    if mix_data:
        on_note(f"warning: this average mixes training data: {_describe(groups)}")
        return valid
    change = data_change(all(trained_on(group[0].path) for group in groups))
    on_note(
        f"left out, since step {valid[-1].step} {change} ({data or UNKNOWN}): {_describe(groups[:-1])}; "
        "--mix_data averages them too"
    )
    return groups[-1]


def _describe(groups: list[list[Checkpoint]]) -> str:
    """Steps and fingerprint of each group of checkpoints of the same training data."""
    return ", ".join(
        f"step{'s' if len(group) > 1 else ''} {', '.join(str(checkpoint.step) for checkpoint in group)} "
        f"({trained_on(group[0].path) or UNKNOWN})"
        for group in groups
    )
