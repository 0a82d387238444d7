"""Results of `t2t-eval`: `output_dir/eval-SPLIT.csv`, with a row for each checkpoint.

The decoded outputs of a row are in `output_dir/eval-SPLIT/STEP-WEIGHTS-SETTINGS.txt`, one a line, so that
rows of different calls can be compared sentence by sentence.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_revival.checkpoints.best import best_value
from t2t_revival.checkpoints.directory import AVERAGED, BEST
from t2t_revival.checkpoints.file import fingerprint
from t2t_revival.curve_files import DEV, read_curve
from t2t_revival.errors import T2TError
from t2t_revival.utils.csv_table import CsvTable
from t2t_revival.utils.files import atomic_write, text_lines

LABELS = ("step", "checkpoint", "weights", "settings")  # all other columns are scores


@dataclass(frozen=True)
class Evaluation:
    """The scores of a checkpoint.

    Attributes:
        step: the checkpoint's.
        checkpoint: path of its file relative to output_dir.
        weights: fingerprint of its weights; see `checkpoints.file.fingerprint`.
        settings: fingerprint of the data and the decoding that it was measured with.
        scores: by name.
    """

    step: int
    checkpoint: str
    weights: str
    settings: str
    scores: dict[str, float]

    @property
    def averaged(self) -> bool:
        """True for the average that t2t-avg-all writes into output_dir."""
        return Path(self.checkpoint).parent == Path(AVERAGED)


def run_metric(output_dir: Path) -> str:
    """Returns the score by which a training chose its best checkpoint, such as "bleu"; empty without any.

    Raises:
        T2TError: best.json is corrupt.
    """
    kept = best_value(output_dir)
    return kept[0] if kept else ""


def dev_score(output_dir: Path, path: Path) -> tuple[str, float] | None:
    """Returns a checkpoint's own score on dev by the run's metric, with its name; `None` if it has none.

    Those of t2t-eval and t2t-avg-all are found by the weights, those of the training by the step, which an
    average does not have. Without a metric of the run it is BLEU, F1 or the loss, the first that was
    measured.

    Raises:
        T2TError: a file of scores is corrupt, or the checkpoint.
    """
    weights = fingerprint(path)
    scored = [row for row in Evaluations(output_dir, DEV, "").all_rows if row.weights == weights]
    scores = dict(scored[-1].scores) if scored else {}
    own = path.parent.name != AVERAGED and path.parent.resolve() in (
        output_dir.resolve(),
        (output_dir / BEST).resolve(),
    )
    if own and not scores:
        step = int(path.stem.rpartition("-")[2])
        rows = [row for row in read_curve(output_dir, DEV) if row["step"] == step]
        scores = rows[-1] if rows else {}
    names = (run_metric(output_dir), "bleu", "f1", "loss")
    name = next((name for name in names if name in scores), "")
    return (name, scores[name]) if name else None


def settings_fingerprint(**values: Any) -> str:
    """Fingerprint of the JSON of `values`, 8 hexadecimal digits."""
    return f"{zlib.crc32(json.dumps(values, sort_keys=True, default=str).encode()):08x}"


class Evaluations:
    """The evaluations of a CSV file, which is replaced with each one that is added.

    Only rows of the same `settings` are read and added; rows of others, and of checkpoints that were removed,
    stay in the file.
    """

    def __init__(self, output_dir: Path, split: str, settings: str) -> None:
        self.path = output_dir / f"eval-{split}.csv"
        self._output_dir = output_dir
        self._settings = settings
        self._rows = CsvTable(self.path).parse(_evaluation)

    @property
    def all_rows(self) -> list[Evaluation]:
        """Evaluations of all settings, in the order of the file."""
        return list(self._rows)

    @property
    def rows(self) -> list[Evaluation]:
        """Evaluations of the settings by step; an average follows the newest of its checkpoints."""
        rows = (row for row in self._rows if row.settings == self._settings)
        return sorted(rows, key=lambda row: (row.step, row.averaged, row.checkpoint))

    def find(self, path: Path, weights: str) -> Evaluation | None:
        """The row of a checkpoint with these weights."""
        wanted = (self._name(path), weights)
        return next((row for row in self.rows if (row.checkpoint, row.weights) == wanted), None)

    def add(self, step: int, path: Path, weights: str, scores: dict[str, float]) -> Evaluation:
        """Adds a row; one of the same file with other weights is removed.

        Raises:
            T2TError: the file cannot be written.
        """
        added = Evaluation(step, self._name(path), weights, self._settings, scores)
        for row in [row for row in self._rows if _replaces(added, row)]:
            self._rows.remove(row)
            self._outputs_path(row).unlink(missing_ok=True)
        self._rows = sorted([*self._rows, added], key=lambda row: (row.step, row.averaged))
        names = dict.fromkeys(name for row in self._rows for name in row.scores)
        columns = [*LABELS[:2], *names, *LABELS[2:]]
        cells = [
            {label: getattr(row, label) for label in LABELS}
            | {name: f"{value:.6g}" for name, value in row.scores.items()}
            for row in self._rows
        ]
        try:
            CsvTable(self.path).write(cells, columns)
        except OSError as error:
            raise T2TError(f"cannot write {self.path}: {error.strerror or error}") from error
        return added

    def save_outputs(self, row: Evaluation, outputs: list[str]) -> None:
        """Writes the decoded outputs of a row, atomically.

        Raises:
            T2TError: the file cannot be written.
        """
        path = self._outputs_path(row)
        try:
            path.parent.mkdir(exist_ok=True)
            with atomic_write(path) as file:
                file.write("".join(f"{line}\n" for line in outputs).encode())
        except OSError as error:
            raise T2TError(f"cannot write {path}: {error.strerror or error}") from error

    def outputs(self, row: Evaluation) -> list[str] | None:
        """The decoded outputs of a row; `None` if their file was removed.

        Raises:
            T2TError: the file is not UTF-8.
        """
        path = self._outputs_path(row)
        return text_lines(path.read_bytes(), str(path)) if path.exists() else None

    def _outputs_path(self, row: Evaluation) -> Path:
        return self.path.with_suffix("") / f"{row.step}-{row.weights}-{row.settings}.txt"

    def _name(self, path: Path) -> str:
        return os.path.relpath(path.resolve(), self._output_dir.resolve())


def _replaces(new: Evaluation, old: Evaluation) -> bool:
    if new.checkpoint != old.checkpoint:
        return False
    return new.weights != old.weights or new.settings == old.settings


def _evaluation(cells: dict[str, str]) -> Evaluation:
    """The evaluation in a row of the file."""
    step, checkpoint, weights, settings = (cells[label] for label in LABELS)
    scores = {name: float(cell) for name, cell in cells.items() if name not in LABELS and cell}
    return Evaluation(int(step), checkpoint, weights, settings, scores)
