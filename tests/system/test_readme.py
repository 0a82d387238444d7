"""The README's Python example runs as it is printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def example() -> str:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if "Experiment(" in block]
    return block


def test_it_is_ten_lines_at_most_besides_imports() -> None:
    lines = [line for line in example().splitlines() if line and not line.startswith(("from", "import", "#"))]
    assert len(lines) <= 10


@pytest.mark.slow
@pytest.mark.parametrize("updates", [5, pytest.param(300, marks=pytest.mark.nightly)])
def test_it_runs(updates: int, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    assert "train_steps=300" in example()
    script.write_text(example().replace("train_steps=300", f"train_steps={updates}"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1].startswith("[")
