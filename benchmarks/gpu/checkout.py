"""Imports from a checkout that is not installed, and commands of it.

python benchmarks/gpu/checkout.py trainer --problem=translate_ende ...    # is t2t-trainer
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def make_importable() -> None:
    """Makes hparams/ and problems/ importable in such a checkout, where they are beside the package."""
    if importlib.util.find_spec("t2t_revival") is None:
        sys.path.insert(0, str(ROOT))
    import t2t_revival

    if importlib.util.find_spec("t2t_revival.hparams") is None:
        t2t_revival.__path__.append(str(ROOT))


if __name__ == "__main__":
    make_importable()
    sys.exit(importlib.import_module(f"t2t_revival.cli.{sys.argv[1]}").main(sys.argv[1:]))
