"""Imports inside functions put off heavy packages, in one block."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from itertools import dropwhile, takewhile

from tests.support.source_tree import MODULES, NAME, Function, Import, import_statements, imported, parsed


@cache
def imported_by(module: str) -> set[str]:
    """The modules that the import of a module imports directly, its packages among them."""
    parts = module.split(".")
    packages = {".".join(parts[:end]) for end in range(1, len(parts))}
    if module not in MODULES:
        return packages
    statements = import_statements(parsed(MODULES[module]), for_types=False, in_functions=False)
    return packages | {name for statement in statements for name in imported(statement)}


@cache
def is_heavy(module: str) -> bool:
    """Whether the import of a module imports a package of others, which may be slow or not installed."""
    seen: set[str] = set()
    to_visit = {module}
    while to_visit:
        seen |= to_visit
        to_visit = {name for visited in to_visit for name in imported_by(visited)} - seen
    return any(name.partition(".")[0] not in {NAME, *sys.stdlib_module_names} for name in seen)


def own_imports(node: ast.AST) -> Iterator[Import]:
    """Import statements of a function, those of functions inside it left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Import):
            yield child
        elif not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield from own_imports(child)


def first_blocks(function: Function) -> set[ast.stmt]:
    """The first import statements of a function's body, and of each `if`, `try` and `with` in it."""
    bodies = [getattr(node, "body", []) for node in ast.walk(function)]
    return {
        statement
        for body in bodies
        if isinstance(body, list)
        for statement in takewhile(is_import, dropwhile(lambda node: not is_import(node), body))
    }


def is_import(node: ast.AST) -> bool:
    return isinstance(node, Import)


def faults_of(module: str) -> Iterator[str]:
    """The imports in functions of a module that belong elsewhere."""
    for function in ast.walk(parsed(MODULES[module])):
        if not isinstance(function, Function):
            continue
        block = first_blocks(function)
        for statement in own_imports(function):
            where = f"{module}, line {statement.lineno}: {ast.unparse(statement)}"
            if statement not in block:
                yield f"{where}: not in one block of {function.name}"
            elif not any(map(is_heavy, imported(statement))):
                yield f"{where}: not heavy, belongs at the top of the file"


def test_imports_in_functions() -> None:
    faults = [fault for module in MODULES for fault in faults_of(module)]
    assert not faults, "\n".join(faults)
