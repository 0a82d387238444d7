"""Numbers that are made once: a CSV file of what each is and its value."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from t2t_revival.training.csv_rows import read_rows, write_rows

COLUMNS = ["what", "value"]


class Kept:
    """Numbers by what they are; each goes to the file as soon as it is made.

    Args:
        path: the CSV file; lines of it that are damaged are made again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values: dict[str, float] = {}
        for row in read_rows(path):
            with suppress(KeyError, TypeError, ValueError):
                self._values[row["what"]] = float(row["value"])

    def value(self, what: str, make: Callable[[], float]) -> float:
        """The number of that description: kept, or made.

        Raises:
            OSError: the file cannot be written; and what `make` raises.
        """
        if what not in self._values:
            self._values[what] = float(make())
            self._path.parent.mkdir(parents=True, exist_ok=True)
            rows = [{"what": name, "value": repr(value)} for name, value in self._values.items()]
            write_rows(self._path, rows, COLUMNS)
        return self._values[what]
