"""CSV files of scores, for any tool."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from t2t_revival.files import writing


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file as text; none, where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[dict[str, Any]], columns: list[str]) -> None:
    """Writes a CSV file, whole or not at all; a row may have more than the columns, or less.

    Raises:
        OSError: it cannot be written.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    with writing(path) as file:
        file.write(text.getvalue().encode())
