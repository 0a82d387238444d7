"""Imports go one way: each package imports only those that stand before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAME = "t2t_revival"
LOW_TO_HIGH = (
    "errors",
    "utils",
    "t2t_names",
    "sample_corpus",
    "registry",
    "hparams",
    "hints",
    "data",
    "model",
    "parsing",
    "problems",
    "training",
    "decoding",
    "evaluation",
    "serving",
    "t2t_import",
    "visualization",
    "experiment",
    "reproduction",
    "distillation",
    "back_translation",
    "server",
    "cli",
)
LOOK_UP = "registry"  # imports what registers itself, at the first look-up
FOLDERS = {NAME: ROOT / NAME, f"{NAME}.problems": ROOT / "problems", f"{NAME}.hparams": ROOT / "hparams"}
MODULES = {
    ".".join([package, *path.relative_to(folder).with_suffix("").parts]): path
    for package, folder in FOLDERS.items()
    for path in sorted(folder.rglob("*.py"))
}


def imports(node: ast.AST) -> Iterator[str]:
    """Modules of this package that a file imports when it runs, those for type checkers left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and child.module:
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        yield from imports(child)


def layer(module: str) -> str:
    """The second part of a dotted name; empty for the package itself."""
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module: str) -> None:
    own = layer(module)
    if own in ("__init__", LOOK_UP):
        return
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    imported = {layer(name) for name in imports(tree) if name.startswith(f"{NAME}.")}
    upward = {name for name in imported if LOW_TO_HIGH.index(name) > LOW_TO_HIGH.index(own)}
    assert not upward, f"{module} imports {upward}, which stand above {own}"
