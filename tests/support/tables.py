"""Tables of tests in text files: `$ NAME` begins one, `CASE => EXPECTED` is a row, # begins a comment."""

from pathlib import Path


def table(file: Path, name: str) -> list[list[str]]:
    """The cases of a table with what is expected of each."""
    lines = iter(file.read_text(encoding="utf-8").splitlines())
    assert f"$ {name}" in lines
    rows = []
    for line in lines:
        if line.startswith("$ "):
            break
        if line and not line.startswith("#"):
            rows.append([cell.strip() for cell in line.split("=>")])
    assert rows
    return rows
