"""The size of the code: figures that may grow by 2% until they are lowered again, so that an idea fits.

`python -m tests.test_size` prints the figures of today beside their limits, and lowers the limits to them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support import source_tree
from tests.support.source_tree import MODULES, NAME, ROOT, import_statements, imported, parsed
from tests.test_import_direction import upward_imports

LONGEST = "lines of the longest file"
LIMITS = {
    "lines of the package": 45_980,
    "lines of the core": 33_010,  # all but addons/ and reproduction/
    "lines of code": 25_835,  # no docstring, blank, comment, import
    "lines of tests": 39_900,
    LONGEST: 500,
    "files": 306,
    "private functions called once": 447,
    "parameters called values": 0,
    "circles of imports": 0,  # imports in functions and for type checkers count too
    "modules in the largest circle": 0,
    "imports that run up": 0,  # in the order of test_import_direction.py
}
ROOM = 0.02  # for ideas; files keep their limit of lines
SLACK = 0.1  # where a figure has fallen by more, its limit must be lowered
NOT_CORE = (f"{NAME}.addons", f"{NAME}.reproduction")


@cache
def figures() -> dict[str, int]:
    """The figures of today, by the names of `LIMITS`."""
    lines = {module: line_count(path) for module, path in MODULES.items()}
    tests = sum(map(line_count, (ROOT / "tests").rglob("*.py")))
    circles = circles_of_imports()
    parameters = (
        node for path in MODULES.values() for node in ast.walk(parsed(path)) if isinstance(node, ast.arg)
    )
    values = (
        sum(lines.values()),
        sum(count for module, count in lines.items() if not module.startswith(NOT_CORE)),
        sum(map(code_lines, MODULES.values())),
        tests,
        max(lines.values()),
        len(MODULES),
        called_once(),
        sum(parameter.arg == "values" for parameter in parameters),
        len(circles),
        max(map(len, circles), default=0),
        len(upward_imports(for_types=True)),
    )
    return dict(zip(LIMITS, values, strict=True))


def line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def code_lines(path: Path) -> int:
    """The lines of a file without blank ones, comments, docstrings and imports."""
    lines = path.read_text(encoding="utf-8").splitlines()
    others = {
        number for number, line in enumerate(lines, start=1) if not line.strip() or line.strip()[0] == "#"
    }
    for node in ast.walk(parsed(path)):
        if isinstance(node, source_tree.Import):
            others.update(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, source_tree.DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            others.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines) - len(others)


def called_once() -> int:
    """The private functions and methods whose name stands once in their file, besides their definition."""
    return sum(uses == 1 for path in MODULES.values() for uses in uses_of_private_functions(parsed(path)))


def uses_of_private_functions(tree: ast.Module) -> Iterator[int]:
    nodes = [*ast.walk(tree)]
    uses = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    uses.update(node.attr for node in nodes if isinstance(node, ast.Attribute))
    for node in nodes:
        if isinstance(node, source_tree.Function) and re.match(r"_[^_]", node.name):
            yield uses[node.name]


def circles_of_imports() -> set[frozenset[str]]:
    """Groups of modules that import each other, also by way of others."""
    graph = {
        module: {
            name
            for statement in import_statements(parsed(path), for_types=True)
            for name in imported(statement)
            if name in MODULES
        }
        for module, path in MODULES.items()
        if module != NAME
    }
    below = {module: reachable(module, graph) for module in graph}
    groups = (frozenset(name for name in below[module] if module in below[name]) for module in graph)
    return {group for group in groups if len(group) > 1}


def reachable(module: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    to_visit = [module]
    while to_visit:
        new = graph[to_visit.pop()] - seen
        seen |= new
        to_visit += new
    return seen


@pytest.mark.parametrize("name", LIMITS)
def test_no_figure_grows(name: str) -> None:
    figure, limit = figures()[name], LIMITS[name]
    most = limit if name == LONGEST else int(limit * (1 + ROOM))
    assert figure <= most, f"{name}: {figure:,}, at most {most:,}"
    assert figure >= limit * (1 - SLACK) or name == LONGEST, (
        f"{name}: {figure:,} of {limit:,}: lower the limits with python -m tests.test_size"
    )


def lower_limits() -> None:
    """Prints the figures of today, and writes those that are below their limits into this file."""
    file = Path(__file__)
    text = file.read_text(encoding="utf-8")
    for name, figure in figures().items():
        print(f"{name:30} {figure:7,} {LIMITS[name]:7,}")
        if figure < LIMITS[name] and name != LONGEST:
            text = re.sub(rf'("{name}": )[\d_]+', rf"\g<1>{figure:_}", text)
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    lower_limits()
