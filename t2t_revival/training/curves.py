"""Curves of a training: CSV files for any tool, events for TensorBoard.

output_dir/train.csv, dev.csv        step, target tokens and seconds so far, and the scores
output_dir/events.*, eval/events.*   the same scores by step
"""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

from t2t_revival.errors import T2TError
from t2t_revival.training.csv_rows import read_rows, write_rows
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
        import tensorflow as tf

        for curve, folder in EVENT_FOLDERS.items():
            self._writers[curve] = tf.summary.create_file_writer(str(self._output_dir / folder))
        return self

    def __exit__(self, *error: object) -> None:
        import tensorflow as tf

        for writer in self._writers.values():
            with suppress(tf.errors.OpError):  # what there was to write, `add` has written
                writer.close()

    def add(self, curve: str, step: int, seen: Seen, scores: dict[str, float]) -> None:
        """Adds a point to the curve of each score.

        Raises:
            T2TError: it cannot be written.
        """
        import tensorflow as tf

        try:
            self._add(curve, step, seen, scores)
        except (OSError, tf.errors.OpError) as error:
            # TensorFlow calls a full disk an exhausted resource, which elsewhere is memory.
            full = isinstance(error, tf.errors.ResourceExhaustedError)
            reason = "No space left on device" if full else getattr(error, "strerror", None) or error
            raise T2TError(
                f"cannot write curves in {self._output_dir}: {reason}; the checkpoints there are untouched: "
                "put that right, and start the same command again"
            ) from error

    def _add(self, curve: str, step: int, seen: Seen, scores: dict[str, float]) -> None:
        import tensorflow as tf

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
        _append(csv_path(self._output_dir, curve), row)


def csv_path(output_dir: Path, curve: str) -> Path:
    """The CSV file of a curve."""
    return output_dir / f"{curve}.csv"


def read_curve(output_dir: Path, curve: str) -> list[dict[str, float]]:
    """The rows of a curve, oldest first; a row has the scores that were measured then."""
    rows = (_numbers(row) for row in read_rows(csv_path(output_dir, curve)))
    return [row for row in rows if {"step", "target_tokens"} <= row.keys()]


def has_point(output_dir: Path, curve: str, step: int) -> bool:
    """Whether a curve has a whole row of that step."""
    return any(
        _is_whole(row) and _numbers(row)["step"] == step for row in read_rows(csv_path(output_dir, curve))
    )


def _is_whole(row: dict[str, str]) -> bool:
    """Whether no crash cut the line short."""
    return None not in row.values() and "step" in _numbers(row)


def _numbers(row: dict[str, str]) -> dict[str, float]:
    numbers = {}
    for name, value in row.items():
        with suppress(TypeError, ValueError):  # a score not measured, or a line cut short by a crash
            numbers[name] = float(value)
    return numbers


def _append(path: Path, row: dict[str, Any]) -> None:
    """Appends a row; where it has other columns than the file, the file is written anew with all of them."""
    rows = read_rows(path)
    columns = list(dict.fromkeys([*(rows[0] if rows else ()), *row]))
    if not rows or columns != list(rows[0]):
        write_rows(path, [*rows, row], columns)
        return
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.DictWriter(file, columns, restval="").writerow(row)


def _drop_after(path: Path, step: int) -> None:
    """Keeps the rows up to `step`; a line cut short by a crash goes too."""
    rows = read_rows(path)
    kept = [row for row in rows if _is_whole(row) and _numbers(row)["step"] <= step]
    if kept:
        write_rows(path, kept, [name for name in rows[0] if name])
    else:
        path.unlink(missing_ok=True)
