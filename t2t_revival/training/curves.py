"""Curves of a training: CSV files, see `curve_files`, and the same scores as events for TensorBoard.

output_dir/events.*       scores of train.csv by step
output_dir/eval/events.*  scores of dev.csv by step
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from t2t_revival.curve_files import DEV, TRAIN, cell, csv_path, drop_after
from t2t_revival.training.state import Seen
from t2t_revival.utils.csv_table import CsvTable
from t2t_revival.utils.files import writing
from t2t_revival.utils.score_events import ScoreEvents

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
        self._events: dict[str, ScoreEvents] = {}
        for curve in EVENT_FOLDERS:
            drop_after(csv_path(output_dir, curve), start_step)

    def __enter__(self) -> Curves:
        with self._writing():
            for curve, folder in EVENT_FOLDERS.items():
                self._events[curve] = ScoreEvents(self._output_dir / folder)
        return self

    def __exit__(self, *error: object) -> None:
        for events in self._events.values():
            with suppress(OSError):  # `add` has flushed everything
                events.close()

    def add(self, curve: str, step: int, seen: Seen, scores: dict[str, float]) -> None:
        """Adds a point to the curve of each score.

        Raises:
            T2TError: it cannot be written.
        """
        row = {
            "step": step,
            "target_tokens": seen.target_tokens,
            "seconds": f"{seen.seconds:.1f}",
            **{name: cell(value) for name, value in scores.items()},
            **{name: label for name, label in self._labels.get(curve, {}).items() if label},
        }
        with self._writing():
            self._events[curve].add(step, time.time(), scores)
            CsvTable(csv_path(self._output_dir, curve)).append(row)

    def _writing(self) -> AbstractContextManager[None]:
        remedy = "the checkpoints there are untouched: fix that, and start the same command again"
        return writing(f"curves in {self._output_dir}", remedy)
