"""A table as people read it (Markdown) and as programs do (CSV)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from t2t_revival.files import writing
from t2t_revival.training.csv_rows import write_rows

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """A table of results.

    Attributes:
        name: of its files, such as "table3".
        title: one line.
        columns: their heads.
        rows: as many cells as columns; None: not known, an empty cell.
        remarks: lines of Markdown that follow the table.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    remarks: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.name}: {len(row)} cells for {len(self.columns)} columns")

    def markdown(self) -> str:
        """Title, table and remarks; numbers stand to the right."""
        numbers = [
            all(isinstance(row[i], int | float | None) for row in self.rows) for i in range(len(self.columns))
        ]
        lines = [
            _line(self.columns),
            _line("---:" if number else "---" for number in numbers),
            *(_line(map(_text, row)) for row in self.rows),
        ]
        return "\n".join([f"## {self.title}", "", *lines, "", *self.remarks]).rstrip() + "\n"

    def texts(self, column: str) -> list[str]:
        """The cells of a column."""
        place = list(self.columns).index(column)
        return [str(row[place]) for row in self.rows]

    def numbers(self, column: str) -> list[float]:
        """The cells of a column as numbers; NaN, where there is none."""
        place = list(self.columns).index(column)
        return [_number(row[place]) for row in self.rows]

    def write(self, folder: Path) -> list[Path]:
        """Writes NAME.md and NAME.csv, each whole or not at all.

        Returns:
            The two files.

        Raises:
            OSError: they cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        text, data = folder / f"{self.name}.md", folder / f"{self.name}.csv"
        with writing(text) as file:
            file.write(self.markdown().encode())
        columns = list(self.columns)
        write_rows(data, [dict(zip(columns, row, strict=True)) for row in self.rows], columns)
        return [text, data]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(cell: Cell) -> float:
    return math.nan if cell is None or cell == "" else float(cell)


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell.replace("|", "\\|")
