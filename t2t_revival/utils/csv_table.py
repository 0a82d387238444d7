"""CSV files with a header line, of scores and other measurements; writing raises `OSError`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from t2t_revival.utils.files import atomic_write

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
        with atomic_write(self.path) as file:
            file.write(text.getvalue().encode())

    def append(self, row: Mapping[str, Any]) -> None:
        """Appends a row; if it has columns that the file lacks, the file is replaced."""
        rows = self.rows()
        columns = [name for name in rows[0] if name] if rows else []
        if not rows or not row.keys() <= set(columns):
            self.write([*rows, row], dict.fromkeys([*columns, *row]))
            return
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, columns, restval="").writerow(row)
