"""Curves of a training: CSV files, see `curve_files`, and the same scores as events for TensorBoard.

output_dir/events.*       scores of train.csv by step
output_dir/eval/events.*  scores of dev.csv by step
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tensorflow as tf

from t2t_revival.errors import T2TError
from t2t_revival.training.curve_files import DEV, TRAIN, cell, csv_path, drop_after, rename_smoothed_losses
from t2t_revival.training.state import Seen
from t2t_revival.utils.csv_table import CsvTable

EVENT_FOLDERS = {TRAIN: "", DEV: "eval"}


class Curves:
    """Writer of scores by step; a context manager that closes its files.

    Args:
        output_dir: folder of the curves.
        start_step: rows of later updates are dropped, since a training that resumes there repeats them.
        labels: fingerprints for the rows of each curve, by column; empty ones are not written.
    """

    def __init__(
        self, output_dir: Path, start_step: int, labels: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        self._output_dir = output_dir
        self._labels = labels or {}
        self._writers: dict[str, Any] = {}
        for curve in EVENT_FOLDERS:
            drop_after(csv_path(output_dir, curve), start_step)
        rename_smoothed_losses(csv_path(output_dir, TRAIN))

    def __enter__(self) -> Curves:
        for curve, folder in EVENT_FOLDERS.items():
            self._writers[curve] = tf.summary.create_file_writer(str(self._output_dir / folder))
        return self

    def __exit__(self, *error: object) -> None:
        for writer in self._writers.values():
            with suppress(tf.errors.OpError):  # `add` has flushed everything
                writer.close()

    def add(self, curve: str, step: int, seen: Seen, scores: dict[str, float]) -> None:
        """Adds a point to the curve of each score.

        Raises:
            T2TError: it cannot be written.
        """
        try:
            self._add(curve, step, seen, scores)
        except (OSError, tf.errors.OpError) as error:
            # TensorFlow calls a full disk an exhausted resource, which elsewhere is memory.
            full = isinstance(error, tf.errors.ResourceExhaustedError)
            reason = "No space left on device" if full else getattr(error, "strerror", None) or error
            raise T2TError(
                f"cannot write curves in {self._output_dir}: {reason}; the checkpoints there are untouched: "
                "fix that, and start the same command again"
            ) from error

    def _add(self, curve: str, step: int, seen: Seen, scores: dict[str, float]) -> None:
        with self._writers[curve].as_default():
            for name, value in scores.items():
                tf.summary.scalar(name, value, step=step)
        self._writers[curve].flush()
        row = {
            "step": step,
            "target_tokens": seen.target_tokens,
            "seconds": f"{seen.seconds:.1f}",
            **{name: cell(value) for name, value in scores.items()},
            **{name: label for name, label in self._labels.get(curve, {}).items() if label},
        }
        CsvTable(csv_path(self._output_dir, curve)).append(row)
