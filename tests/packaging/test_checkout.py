"""A checkout on PYTHONPATH is used as a whole, also beside an installed one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SHOW = (
    "import t2t_revival, t2t_revival.problems, t2t_revival.hparams\n"
    "for module in (t2t_revival, t2t_revival.problems, t2t_revival.hparams): print(module.__file__)\n"
    "print(t2t_revival.problems.MARK)"
)


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """A copy of what a checkout imports, with a mark; the first one is installed, or not."""
    for folder in ("t2t_revival", "problems", "hparams"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "problems" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write("MARK = 'of the second'\n")
    return tmp_path


def run_python(code: str, path: Path, *flags: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *flags, "-c", code],
        cwd=path.parent,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
    )


def test_a_second_checkout_has_its_own_problems_and_hparams(second: Path) -> None:
    done = run_python(SHOW, second)
    files = [second / name / "__init__.py" for name in ("t2t_revival", "problems", "hparams")]
    assert done.stdout.splitlines() == [*map(str, files), "of the second"], done.stderr


def test_only_problems_and_hparams_of_a_checkout_belong_to_the_package(second: Path) -> None:
    (second / "data").mkdir()
    (second / "data" / "__init__.py").write_text("raise SystemExit('hides t2t_revival.data')")
    assert run_python("import t2t_revival.data", second).returncode == 0


@pytest.mark.parametrize("missing", ["problems", "hparams"])
def test_a_package_without_them_is_an_error_beside_an_installed_one(second: Path, missing: str) -> None:
    shutil.rmtree(second / missing)
    (second / missing / "__pycache__").mkdir(parents=True)
    done = run_python("import t2t_revival", second)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: no {missing} in {second / 't2t_revival'} or beside it: "
        "copy the whole checkout, or install it"
    )
