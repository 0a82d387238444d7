"""Curves of a training: CSV files for any tool, events for TensorBoard.

output_dir/train.csv, dev.csv        step, target tokens and seconds so far, and the scores
output_dir/events.*, eval/events.*   the same scores by step
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import tensorflow as tf

from t2t_revival.training.state import Seen

TRAIN, DEV = "train", "dev"
EVENT_FOLDERS = {TRAIN: "", DEV: "eval"}


class Curves:
    """Writes scores by step; a context manager that closes its files.

    Args:
        output_dir: where they go.
        start_step: rows of later updates are dropped, since a training that goes on from there does them
            again.
    """

    def __init__(self, output_dir: Path, start_step: int) -> None:
        self._output_dir = output_dir
        self._writers: dict[str, Any] = {}
        for curve in EVENT_FOLDERS:
            _drop_after(csv_path(output_dir, curve), start_step)

    def __enter__(self) -> Curves:
        for curve, folder in EVENT_FOLDERS.items():
            self._writers[curve] = tf.summary.create_file_writer(str(self._output_dir / folder))
        return self

    def __exit__(self, *error: object) -> None:
        for writer in self._writers.values():
            writer.close()

    def add(self, curve: str, step: int, seen: Seen, scores: dict[str, float]) -> None:
        """Adds a point to the curve of each score."""
        with self._writers[curve].as_default():
            for name, value in scores.items():
                tf.summary.scalar(name, value, step=step)
        self._writers[curve].flush()
        row = {
            "step": step,
            "target_tokens": seen.target_tokens,
            "seconds": f"{seen.seconds:.1f}",
            **{name: f"{value:.6g}" for name, value in scores.items()},
        }
        _append(csv_path(self._output_dir, curve), [row])


def csv_path(output_dir: Path, curve: str) -> Path:
    """The CSV file of a curve."""
    return output_dir / f"{curve}.csv"


def read_curve(output_dir: Path, curve: str) -> list[dict[str, float]]:
    """The rows of a curve, oldest first; none where it was not written."""
    path = csv_path(output_dir, curve)
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def _append(path: Path, rows: list[dict[str, Any]]) -> None:
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        if new:
            writer.writeheader()
        writer.writerows(rows)


def _drop_after(path: Path, step: int) -> None:
    if not path.exists():
        return
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["step"]) <= step]
    if not rows:
        path.unlink()
        return
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    _append(temporary, rows)
    temporary.replace(path)
