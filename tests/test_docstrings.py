"""Docstrings begin with a third-person verb or a noun phrase, as CONTRIBUTING.md asks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("t2t_revival", "problems", "hparams")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
NO_BEGINNING = re.compile(
    r"(what|who|whose|whom|where|when|which|whether|why|how|of|inside|in|on|at|by|with|without|as|if|that|those|"
    r"these|this|it|its|see|so|goes|gives|says|tells|knows|asks|is|are)\b",
    re.IGNORECASE,
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def first_words(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and first word of each docstring of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text.split()[0].strip(".,:;`")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_first_words(path: Path) -> None:
    wrong = [f"line {line}: {word}" for line, word in first_words(path) if NO_BEGINNING.fullmatch(word)]
    assert not wrong


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "examples"])
def test_first_words_outside_the_package(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}, line {line}: {word}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, word in first_words(path)
        if word in ("What", "Who", "Of", "Where", "Inside")
    ]
    assert not wrong
