"""CSV files: with a header line, as `CsvTable`; and those of a training's curves, which `Curves` writes.

output_dir/train.csv, dev.csv    step, target tokens and seconds so far, scores, and fingerprints of the data
                                 and of the decoding that they were measured with

Writing raises `OSError`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from t2t_revival.metrics.metric import metric_of
from t2t_revival.utils.files import write_whole

Scores = dict[str, float]  # by name, such as "bleu" or "loss/news"
TRAIN, DEV = "train", "dev"
DATA, DECODING = "data", "decoding"  # columns that hold fingerprints; all others hold numbers
SMOOTHED = "smoothed_loss"  # column of train.csv
# Nats: a fall of the loss over the checkpoints of an average, above which it is worse than the last.
STEEP = 0.1
ANNEALED = 0.01  # share of the highest learning rate, below which a training has come to rest
T = TypeVar("T")


@dataclass(frozen=True)
class CsvTable:
    """A CSV file, read as text; it need not exist."""

    path: Path

    def rows(self) -> list[dict[str, str]]:
        """The rows of the file; none if there is no file."""
        if not self.path.exists():
            return []
        with self.path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def parse(self, parse_row: Callable[[dict[str, str]], T]) -> list[T]:
        """The rows as `parse_row` returns them, without corrupt ones, for which it raises."""
        parsed = []
        for row in self.rows():
            with suppress(KeyError, TypeError, ValueError):
                parsed.append(parse_row(row))
        return parsed

    def write(self, rows: Iterable[Mapping[str, Any]], columns: Iterable[str] | None = None) -> None:
        """Replaces the file at once. Rows may lack columns, or have more, which are not written.

        Without `columns` the file has those of all rows, in the order in which they appear.
        """
        rows = list(rows)
        names = list(columns or dict.fromkeys(name for row in rows for name in row if name))
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
        write_whole(self.path, text.getvalue().encode())

    def append(self, row: Mapping[str, Any]) -> None:
        """Appends a row; if it has columns that the file lacks, the file is replaced."""
        rows = self.rows()
        columns = [name for name in rows[0] if name] if rows else []
        if not rows or not row.keys() <= set(columns):
            self.write([*rows, row], dict.fromkeys([*columns, *row]))
            return
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, columns, restval="").writerow(row)


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


def is_annealed(output_dir: Path) -> bool:
    """Returns whether the learning rate has fallen to about 0, where the newest weights are the best."""
    rates = [row["learning_rate"] for row in read_curve(output_dir, TRAIN) if "learning_rate" in row]
    return bool(rates) and rates[-1] < ANNEALED * max(rates)


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
