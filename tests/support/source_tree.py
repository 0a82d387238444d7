"""The package's Python files, for the tests that read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME = "t2t_revival"
FOLDERS = {NAME: ROOT / NAME, f"{NAME}.problems": ROOT / "problems", f"{NAME}.hparams": ROOT / "hparams"}
MODULES = {
    ".".join([package, *path.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__"): path
    for package, folder in FOLDERS.items()
    for path in sorted(folder.rglob("*.py"))
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom
DOCUMENTED = ast.Module | ast.ClassDef | Function


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))


def imported(statement: Import) -> Iterator[str]:
    """The modules that an import statement names."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif statement.module:
        for alias in statement.names:
            name = f"{statement.module}.{alias.name}"
            yield name if name in MODULES else statement.module


def import_statements(node: ast.AST, *, for_types: bool, in_functions: bool = True) -> Iterator[Import]:
    """The import statements below a node, with or without those for type checkers, and those in functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING" and not for_types:
            continue
        if isinstance(child, Import):
            yield child
        elif in_functions or not isinstance(child, Function | ast.Lambda):
            yield from import_statements(child, for_types=for_types, in_functions=in_functions)
