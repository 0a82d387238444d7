"""Users' packages that a guide shows."""

import re
from pathlib import Path

TRAINING = Path(__file__).parents[2] / "docs" / "guides" / "training.md"


def guide_package(folder: Path, word: str) -> str:
    """Writes the package of docs/guides/training.md whose code has a word; returns its folder."""
    blocks = re.findall(r"```python\n(.*?)```", TRAINING.read_text(encoding="utf-8"), re.S)
    (code,) = [block for block in blocks if word in block]
    folder.mkdir()
    (folder / "__init__.py").write_text(code)
    return str(folder)
