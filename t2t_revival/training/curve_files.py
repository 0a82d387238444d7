"""CSV files of a training's curves: what `Curves` writes, for all who read it.

output_dir/train.csv, dev.csv        step, target tokens and seconds so far, and the scores
"""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

from t2t_revival.training.csv_rows import read_rows, write_rows

TRAIN, DEV = "train", "dev"


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
