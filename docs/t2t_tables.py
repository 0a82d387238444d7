"""Writes what is gone or renamed into from_tensor2tensor.md, from the tables that the commands answer by.

    python docs/t2t_tables.py

The rows of what is the same are written by hand, and stand before these.
"""

from pathlib import Path

from t2t_revival import t2t_names
from t2t_revival.cli.support import t2t_flags

PAGE = Path(__file__).with_name("from_tensor2tensor.md")
TABLES = {**t2t_flags.GONE, "Problems": t2t_names.PROBLEMS, "Hparams sets": t2t_names.HPARAMS_SETS}


def updated(text: str) -> str:
    """The page with the rows of the code in its sections."""
    head, *sections = text.split("\n## ")
    return "\n## ".join([head, *map(updated_section, sections)])


def updated_section(section: str) -> str:
    """A section with the rows of its table; another one as it is."""
    title = section.partition("\n")[0]
    if title not in TABLES:
        return section
    dashes = "--" if title in t2t_flags.GONE else ""
    lines = [line for line in section.split("\n") if not line.startswith("| `") or "| the same |" in line]
    end = max(
        number for number, line in enumerate(lines) if line.startswith("| `") or line == "|---|---|---|"
    )
    return "\n".join(
        [*lines[: end + 1], *(table_row(row, dashes) for row in TABLES[title]), *lines[end + 1 :]]
    )


def table_row(row: t2t_names.Row, dashes: str) -> str:
    """A row as Markdown."""
    names = ", ".join(f"`{dashes}{name}`" for name in row.names.split()).replace("hp_NAME", "hp_NAME VALUE")
    here = ", ".join(f"`{name}`" for name in row.ours) or "gone"
    return f"| {names} | {here} | {row.note} |".replace("|  |", "| |")


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
