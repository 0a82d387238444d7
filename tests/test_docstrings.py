"""Docstrings begin with a third-person verb or a noun phrase, as CONTRIBUTING.md asks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.source_tree import DOCUMENTED, MODULES, ROOT, parsed

NO_BEGINNING = re.compile(
    r"(what|who|whose|whom|where|when|which|whether|why|how|of|inside|in|on|at|by|with|without|as|if|that|those|"
    r"these|this|it|its|see|so|goes|gives|says|tells|knows|asks|is|are)\b",
    re.IGNORECASE,
)
NO_BEGINNING_ELSEWHERE = re.compile("What|Who|Of|Where|Inside")


def wrong_beginnings(paths: Iterable[Path], wrong: re.Pattern[str]) -> Iterator[str]:
    """The docstrings whose first word is a wrong one: file, line, word."""
    for path in paths:
        for node in ast.walk(parsed(path)):
            if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                word = text.split()[0].strip(".,:;`")
                if wrong.fullmatch(word):
                    yield f"{path.relative_to(ROOT)}, line {getattr(node, 'lineno', 1)}: {word}"


def test_first_words() -> None:
    faults = [*wrong_beginnings(MODULES.values(), NO_BEGINNING)]
    for folder in ("tests", "tools", "benchmarks", "examples"):
        faults += wrong_beginnings(sorted((ROOT / folder).rglob("*.py")), NO_BEGINNING_ELSEWHERE)
    assert not faults, "\n".join(faults)
