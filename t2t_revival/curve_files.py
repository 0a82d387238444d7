"""CSV files of a training's curves, which `Curves` writes.

output_dir/train.csv, dev.csv    step, target tokens and seconds so far, scores, and fingerprints of the data
                                 and of the decoding that they were measured with
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from t2t_revival.metrics.metric import metric_of
from t2t_revival.utils.csv_table import CsvTable

Scores = dict[str, float]  # by name, such as "bleu" or "loss/news"
TRAIN, DEV = "train", "dev"
DATA, DECODING = "data", "decoding"  # columns that hold fingerprints; all others hold numbers
SMOOTHED = "smoothed_loss"  # column of train.csv
# Nats: a fall of the loss over the checkpoints of an average, above which it is worse than the last.
STEEP = 0.1


@dataclass(frozen=True)
class Segment:
    """Consecutive rows of a curve whose values of one score can be compared."""

    measured_on: str  # fingerprints that the rows share; see `measured_on`
    rows: list[dict[str, float]]  # numbers by column, oldest first; each row has the score


def csv_path(output_dir: Path, curve: str) -> Path:
    """The CSV file of a curve."""
    return output_dir / f"{curve}.csv"


def cell(value: float) -> str:
    """A score as a curve's file has it: rounded to 6 digits."""
    return f"{value:.6g}"


def read_curve(output_dir: Path, curve: str) -> list[dict[str, float]]:
    """The rows of a curve, oldest first; a row has the scores that were measured then."""
    return [numbers for _, numbers in _labels_and_numbers(output_dir, curve)]


def read_segments(output_dir: Path, curve: str, score: str) -> list[Segment]:
    """The rows that have a score, oldest first, split where the data or the way of decoding changed."""
    rows = _labels_and_numbers(output_dir, curve)
    scored = [(measured_on(labels, score), numbers) for labels, numbers in rows if score in numbers]
    groups = groupby(scored, key=lambda row: row[0])
    return [Segment(version, [numbers for _, numbers in group]) for version, group in groups]


def comparable_rows(
    output_dir: Path, curve: str, score: str, labels: Mapping[str, str]
) -> list[dict[str, float]]:
    """The rows whose values of a score were measured on the data, and in the way, that `labels` name."""
    return _measured_on(measured_on(labels, score), read_segments(output_dir, curve, score))


def best_row(output_dir: Path, score: str) -> dict[str, float] | None:
    """The last dev row with the best value of a score among those comparable with the last, or `None`."""
    segments = read_segments(output_dir, DEV, score)
    rows = _measured_on(segments[-1].measured_on, segments) if segments else []
    return min(rows, key=lambda row: (metric_of(score).rank(row[score]), -row["step"]), default=None)


def is_falling(output_dir: Path, count: int) -> bool:
    """Returns whether the dev loss fell by more than `STEEP` during the last `count` evaluations."""
    segments = read_segments(output_dir, DEV, "loss")
    losses = [row["loss"] for row in segments[-1].rows[-count:]] if segments else []
    return bool(losses) and losses[-1] < losses[0] - STEEP


def measured_on(labels: Mapping[str, str], score: str) -> str:
    """Fingerprints that two values of a score must share to be comparable."""
    names = (DATA, DECODING) if metric_of(score).outputs else (DATA,)
    return " ".join(labels.get(name) or "" for name in names).rstrip()


def _measured_on(version: str, segments: list[Segment]) -> list[dict[str, float]]:
    return [row for segment in segments if segment.measured_on == version for row in segment.rows]


def has_point(output_dir: Path, curve: str, step: int) -> bool:
    """Returns whether a curve has a complete row of that step."""
    rows = CsvTable(csv_path(output_dir, curve)).rows()
    return any(_is_complete(row) and _numbers(row)["step"] == step for row in rows)


def drop_after(path: Path, step: int) -> None:
    """Keeps the complete rows up to `step`; removes the file if there are none."""
    table = CsvTable(path)
    kept = [row for row in table.rows() if _is_complete(row) and _numbers(row)["step"] <= step]
    if kept:
        table.write(kept)
    else:
        path.unlink(missing_ok=True)


def _labels_and_numbers(output_dir: Path, curve: str) -> list[tuple[dict[str, str], dict[str, float]]]:
    """Each row as it stands in the file, and its numbers, without rows that a crash truncated early."""
    rows = ((row, _numbers(row)) for row in CsvTable(csv_path(output_dir, curve)).rows())
    return [(row, numbers) for row, numbers in rows if {"step", "target_tokens"} <= numbers.keys()]


def _is_complete(row: dict[str, str]) -> bool:
    """Returns whether no crash truncated the row."""
    return None not in row.values() and "step" in _numbers(row)


def _numbers(row: dict[str, str]) -> dict[str, float]:
    numbers = {}
    for name, value in row.items():
        if name in (DATA, DECODING):
            continue
        with suppress(TypeError, ValueError):  # a score that was not measured, or a truncated row
            numbers[name] = float(value)
    return numbers
