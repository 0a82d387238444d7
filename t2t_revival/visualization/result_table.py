"""A table of results, written as Markdown and CSV, and the dot plots drawn from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_revival.curve_files import CsvTable
from t2t_revival.utils.files import write_whole
from t2t_revival.visualization import png_figure

Cell = str | int | float | None


@dataclass(frozen=True)
class ResultTable:
    """A table of results."""

    name: str  # base name of its files, such as "table3"
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]  # one cell per column; an unknown value is `None`, an empty cell
    remarks: Sequence[str] = ()  # lines of Markdown below the table

    def markdown(self) -> str:
        """Returns title, table and remarks; columns of numbers are right-aligned."""
        numeric = [
            all(isinstance(row[i], int | float | None) for row in self.rows) for i in range(len(self.columns))
        ]
        lines = [
            _line(self.columns),
            _line("---:" if number else "---" for number in numeric),
            *(_line(map(_text, row)) for row in self.rows),
        ]
        return "\n".join([f"## {self.title}", "", *lines, "", *self.remarks]).rstrip() + "\n"

    def texts(self, column: str) -> list[str]:
        """Returns the cells of a column as text."""
        return [str(cell) for cell in self._cells(column)]

    def numbers(self, column: str) -> list[float]:
        """Returns the cells of a column as numbers, NaN for empty cells."""
        return [math.nan if cell in (None, "") else float(cell) for cell in self._cells(column)]

    def _cells(self, column: str) -> list[Any]:
        index = list(self.columns).index(column)
        return [row[index] for row in self.rows]

    def write(self, folder: Path) -> list[Path]:
        """Writes NAME.md and NAME.csv, each atomically, and returns their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        text, data = folder / f"{self.name}.md", folder / f"{self.name}.csv"
        write_whole(text, self.markdown().encode())
        columns = list(self.columns)
        CsvTable(data).write([dict(zip(columns, row, strict=True)) for row in self.rows], columns)
        return [text, data]


def draw_dots(
    path: Path,
    title: str,
    x_label: str,
    points: Sequence[tuple[str, float, float]],
    paper_label: str = "paper",
    zero_line: bool = False,
) -> None:
    """Draws the paper's value and the one measured here side by side, one row per label, as PNG.

    Points are label, the paper's value and the measured value, top to bottom; NaN draws nothing. The legend
    calls the paper's values `paper_label`; `zero_line` draws a vertical line at 0.
    """
    labels, paper, here = zip(*points, strict=True)
    with png_figure(path, 8, 1.4 + 0.3 * len(points)) as figure:
        axes = figure.add_subplot()
        if zero_line:
            axes.axvline(0, color="#5c6670", linewidth=1)
        axes.hlines(range(len(points)), paper, here, color="#c8d0d8", linewidth=1.5, zorder=1)
        axes.scatter(paper, range(len(points)), color="#7a9cc6", label=paper_label, zorder=2)
        axes.scatter(here, range(len(points)), color="#c0562f", marker="s", label="here", zorder=2)
        axes.set_yticks(range(len(points)), labels, fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel(x_label)
        axes.set_title(title)
        axes.grid(axis="x", alpha=0.3)
        figure.legend(frameon=False, loc="outside lower center", ncols=2)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell.replace("|", "\\|")
