"""Imports from a checkout that is not installed, and commands of it.

python benchmarks/gpu/checkout.py trainer --problem=translate_ende ...    # is t2t-trainer
"""

from __future__ import annotations

import importlib
import importlib.util
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IN_CHECKOUT = [sys.executable, str(Path(__file__).resolve())]  # begins command lines


def make_importable() -> None:
    """Makes such a checkout importable."""
    if importlib.util.find_spec("t2t_revival") is None:
        sys.path.insert(0, str(ROOT))


if __name__ == "__main__":
    make_importable()
    name = sys.argv.pop(1)
    if name.endswith(".py"):
        sys.path[0] = str(Path(name).parent)
        runpy.run_path(name, run_name="__main__")
    else:
        sys.exit(importlib.import_module(f"t2t_revival.cli.{name}").main([name, *sys.argv[1:]]))
