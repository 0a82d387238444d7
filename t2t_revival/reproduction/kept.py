"""Numbers that are computed once, in a CSV file with a description of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from t2t_revival.utils.csv_table import CsvTable


class Kept:
    """Numbers by their descriptions; each is written to the file as soon as it is computed.

    Args:
        path: the CSV file; numbers in damaged lines are computed again.
    """

    def __init__(self, path: Path) -> None:
        self._table = CsvTable(path)
        self._values = dict(self._table.parse(lambda row: (row["what"], float(row["value"]))))

    def value(self, what: str, make: Callable[[], float]) -> float:
        """The number of that description, computed by `make` unless the file has it.

        Raises:
            OSError: the file cannot be written; and as `make`.
        """
        if what not in self._values:
            self._values[what] = float(make())
            self._table.path.parent.mkdir(parents=True, exist_ok=True)
            self._table.write({"what": name, "value": repr(value)} for name, value in self._values.items())
        return self._values[what]
