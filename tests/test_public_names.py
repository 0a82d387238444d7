"""The names that users import: all from `t2t_revival`, none before it is needed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import t2t_revival
from tests.support.source_tree import ROOT

WITH_KERAS = {"Experiment", "TokenCrossEntropy", "Transformer", "make_optimizer"}


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(t2t_revival.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imported = [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(imported) == sorted(t2t_revival.__all__)
    assert set(imported) <= set(dir(t2t_revival))


def test_importing_the_package_changes_nothing_else() -> None:
    state = "(dict(os.environ), [*sys.meta_path], [*warnings.filters], sorted(os.listdir('/proc/self/fd')))"
    program = f"import os, sys, warnings; before = {state}; import t2t_revival; print(before == {state}"
    assert run(f"{program}, [name for name in sys.modules if name.startswith('t2t')])") == (
        "True ['t2t_revival']\n"
    )


def test_most_need_no_keras() -> None:
    light = sorted(set(t2t_revival.__all__) - WITH_KERAS)
    heavy = "[name for name in ('keras', 'tensorflow', 'jax', 'torch') if name in sys.modules]"
    assert run(f"import sys; from t2t_revival import {', '.join(light)}; print({heavy})") == "[]\n"
    for name in light:
        if name not in ("registry", "Text2TextProblem"):  # a module, and T2T's name of Problem
            assert getattr(t2t_revival, name).__name__ == name


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WITH_KERAS))
def test_the_others(name: str) -> None:
    assert getattr(t2t_revival, name).__name__ == name


def test_the_package_alone_imports_none() -> None:
    assert run(
        "import sys, t2t_revival; print('t2t_revival.registry' in sys.modules, 'numpy' in sys.modules)"
    ) == ("False False\n")
    assert run("import t2t_revival; print(t2t_revival.registry.snake_case('AbC'))") == "ab_c\n"


def test_other_names() -> None:
    with pytest.raises(AttributeError, match="module 't2t_revival' has no attribute 'Translater'"):
        t2t_revival.Translater  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Translater'"):
        from t2t_revival import Translater  # type: ignore[attr-defined]  # noqa: F401


def test_pages_and_examples_import_nothing_else() -> None:
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    faults = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in files
        for module in re.findall(
            r"^ *(?:from|import) (t2t_revival[\w.]*)", path.read_text(encoding="utf-8"), re.M
        )
        if module not in ("t2t_revival", "t2t_revival.model")
    ]
    assert not faults, "\n".join(faults)
