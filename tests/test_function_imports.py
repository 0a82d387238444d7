"""Imports inside functions put off heavy packages, in one block at the beginning of the body."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAME = "t2t_revival"
FOLDERS = {NAME: ROOT / NAME, f"{NAME}.problems": ROOT / "problems", f"{NAME}.hparams": ROOT / "hparams"}
MODULES = {
    ".".join([package, *path.relative_to(folder).with_suffix("").parts]).removesuffix(".__init__"): path
    for package, folder in FOLDERS.items()
    for path in sorted(folder.rglob("*.py"))
}
HEAVY = {  # slow to import, or optional
    *("tensorflow", "tensorflow_datasets", "tensorflow_serving", "tensorflow_text", "keras", "keras_nlp"),
    *(
        "apache_beam",
        "ctranslate2",
        "datasets",
        "fastapi",
        "grpc",
        "huggingface_hub",
        "jax",
        "sentencex",
        "eflomal",
        "torch",
        "uvicorn",
    ),
    *("matplotlib", "nltk", "numpy", "sacrebleu", "sacremoses", "tensorboard", "yaml"),
}
LOOK_UP = f"{NAME}.registry"  # imports what registers itself, at the first look-up
Function = ast.FunctionDef | ast.AsyncFunctionDef


def imported(node: ast.stmt) -> Iterator[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            yield name if name in MODULES else node.module


def at_top(body: list[ast.stmt]) -> Iterator[str]:
    """The modules that are imported when a module is; those for type checkers are not."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield from imported(node)
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(node, Function):
                yield from at_top(getattr(node, part, []))


@cache
def imported_by(module: str) -> set[str]:
    """The modules that the import of a module imports directly, its packages among them."""
    parts = module.split(".")
    packages = {".".join(parts[:end]) for end in range(1, len(parts))}
    own = at_top(ast.parse(MODULES[module].read_text(encoding="utf-8")).body) if module in MODULES else []
    return packages | set(own)


@cache
def is_heavy(module: str) -> bool:
    """Whether the import of a module imports one of the heavy packages."""
    seen: set[str] = set()
    to_visit = {module}
    while to_visit:
        seen |= to_visit
        to_visit = {name for visited in to_visit for name in imported_by(visited)} - seen
    return bool(HEAVY & seen)


def functions(module: str) -> Iterator[Function]:
    """All functions of a module, those inside classes and functions among them."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    yield from (node for node in ast.walk(tree) if isinstance(node, Function))


def own_imports(node: ast.AST) -> Iterator[ast.stmt]:
    """Import statements of a function, those of functions inside it left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield from own_imports(child)


def at_beginning(function: Function) -> set[ast.stmt]:
    """The import statements with which a function begins; a `try` may explain a missing package."""
    found: set[ast.stmt] = set()
    for node in function.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        block = node.body if isinstance(node, ast.Try) else [node]
        if not all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in block):
            break
        found |= set(block)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_imports_in_functions(module: str) -> None:
    faults = []
    for function in functions(module) if module != LOOK_UP else ():
        beginning = at_beginning(function)
        for statement in own_imports(function):
            where = f"line {statement.lineno}: {ast.unparse(statement)}"
            if statement not in beginning:
                faults.append(f"{where}: not at the beginning of {function.name}")
            elif not any(map(is_heavy, imported(statement))):
                faults.append(f"{where}: not heavy, belongs at the top of the file")
    assert not faults
