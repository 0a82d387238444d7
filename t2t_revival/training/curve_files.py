"""CSV files of a training's curves: what `Curves` writes, for all who read it.

output_dir/train.csv, dev.csv    step, target tokens and seconds so far, the scores, and what they were
                                 measured on: fingerprints of the data and of the way of decoding
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from t2t_revival.training.csv_rows import read_rows, write_rows

TRAIN, DEV = "train", "dev"
DATA, DECODING = "data", "decoding"  # columns that hold fingerprints; all others hold numbers
TEACHER_FORCED = ("loss", "perplexity", "accuracy")  # all other dev scores are of decoded sentences
SMOOTHED = "smoothed_loss"  # column of train.csv; earlier versions called it "loss"
LOWER_IS_BETTER = ("loss", "perplexity")
UNKNOWN = "unknown"  # instead of a fingerprint, where nobody knows any more


@dataclass(frozen=True)
class Segment:
    """Consecutive rows of a curve whose values of one score can be compared.

    Attributes:
        measured_on: fingerprints that the rows share; see `measured_on`.
        rows: their numbers by column, oldest first; each has the score.
    """

    measured_on: str
    rows: list[dict[str, float]]


def csv_path(output_dir: Path, curve: str) -> Path:
    """The CSV file of a curve."""
    return output_dir / f"{curve}.csv"


def read_curve(output_dir: Path, curve: str) -> list[dict[str, float]]:
    """The rows of a curve, oldest first; a row has the scores that were measured then."""
    return [numbers for _, numbers in _points(output_dir, curve)]


def read_segments(output_dir: Path, curve: str, score: str) -> list[Segment]:
    """The rows that have a score, oldest first, cut where the data or the way of decoding changed."""
    rows = [(measured_on(labels, score), row) for labels, row in _points(output_dir, curve) if score in row]
    groups = groupby(rows, key=lambda row: row[0])
    return [Segment(version, [numbers for _, numbers in group]) for version, group in groups]


def comparable_rows(
    output_dir: Path, curve: str, score: str, labels: Mapping[str, str]
) -> list[dict[str, float]]:
    """The rows whose values of a score were measured on the data, and in the way, that `labels` name."""
    now = measured_on(labels, score)
    segments = read_segments(output_dir, curve, score)
    return [row for segment in segments if segment.measured_on == now for row in segment.rows]


def best_row(output_dir: Path, score: str) -> dict[str, float] | None:
    """The dev row with the best value of a score, among those comparable with the last; None without any."""
    segments = read_segments(output_dir, DEV, score)
    rows = [
        row for segment in segments if segment.measured_on == segments[-1].measured_on for row in segment.rows
    ]
    sign = 1 if score in LOWER_IS_BETTER else -1
    return min(rows, key=lambda row: (math.isnan(row[score]), sign * row[score]), default=None)


def measured_on(labels: Mapping[str, str], score: str) -> str:
    """Fingerprints that two values of a score must share to be comparable."""
    names = (DATA,) if score in TEACHER_FORCED else (DATA, DECODING)
    return " ".join(labels.get(name) or "" for name in names).rstrip()


def has_point(output_dir: Path, curve: str, step: int) -> bool:
    """Whether a curve has a whole row of that step."""
    return any(
        _is_whole(row) and _numbers(row)["step"] == step for row in read_rows(csv_path(output_dir, curve))
    )


def _points(output_dir: Path, curve: str) -> list[tuple[dict[str, str], dict[str, float]]]:
    """Each row as it stands in the file, and its numbers."""
    rows = ((row, _numbers(row)) for row in read_rows(csv_path(output_dir, curve)))
    return [(row, numbers) for row, numbers in rows if {"step", "target_tokens"} <= numbers.keys()]


def _is_whole(row: dict[str, str]) -> bool:
    """Whether no crash cut the line short."""
    return None not in row.values() and "step" in _numbers(row)


def _numbers(row: dict[str, str]) -> dict[str, float]:
    numbers = {}
    for name, value in row.items():
        if name in (DATA, DECODING):
            continue
        with suppress(TypeError, ValueError):  # a score not measured, or a line cut short by a crash
            numbers[name] = float(value)
    return numbers


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Appends a row; where it has other columns than the file, the file is written anew with all of them."""
    rows = read_rows(path)
    columns = list(dict.fromkeys([*(rows[0] if rows else ()), *row]))
    if not rows or columns != list(rows[0]):
        write_rows(path, [*rows, row], columns)
        return
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.DictWriter(file, columns, restval="").writerow(row)


def drop_after(path: Path, step: int) -> None:
    """Keeps the rows up to `step`; a line cut short by a crash goes too."""
    rows = read_rows(path)
    kept = [row for row in rows if _is_whole(row) and _numbers(row)["step"] <= step]
    if kept:
        write_rows(path, kept, [name for name in rows[0] if name])
    else:
        path.unlink(missing_ok=True)


def rename_smoothed_losses(path: Path) -> None:
    """Renames the column "loss" of a train.csv of earlier versions, which held the smoothed loss."""
    rows = read_rows(path)
    if not rows or SMOOTHED in rows[0] or "loss" not in rows[0]:
        return
    renamed = [{SMOOTHED if name == "loss" else name: cell for name, cell in row.items()} for row in rows]
    write_rows(path, renamed, list(renamed[0]))


def label_rows(path: Path, labels: Mapping[str, str]) -> int:
    """Adds labels to the rows that an earlier version wrote without.

    Returns:
        How many rows had none.

    Raises:
        OSError: the file cannot be written.
    """
    rows = [row for row in read_rows(path) if _is_whole(row)]
    bare = [row for row in rows if not row.get(DATA)]
    for row in bare:
        row.update(labels)
    if bare:
        write_rows(path, rows, list(dict.fromkeys(name for row in rows for name in row)))
    return len(bare)
