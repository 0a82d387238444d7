"""bergamot-translator's WebAssembly engine, under node, where npm can install it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

PACKAGE = "@browsermt/bergamot-translator"
VERSION = "0.4.9"
SCRIPT = Path(__file__).with_name("bergamot.mjs")


def library(folder: Path) -> Path:
    """Installs the package into a folder; returns its place. Skips the test where that is not possible."""
    if not (shutil.which("npm") and shutil.which("node")):
        pytest.skip("npm and node are not installed")
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"{PACKAGE}@{VERSION}"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=120)
    if done.returncode:
        pytest.skip(f"npm cannot install {PACKAGE}")
    place = folder / "node_modules" / PACKAGE
    (place / "worker" / "package.json").write_text('{"type": "commonjs"}')  # as node needs it
    return place


def translate(library: Path, folder: Path, lines: Sequence[str]) -> list[str]:
    """Returns what the engine makes of lines, one sentence each.

    It checks the model before, but no shortlist, since its checksums are those of machines of 64 bits.
    """
    path = folder / "registry.json"
    ((pair, files),) = json.loads(path.read_text()).items()
    files["config"] |= {"ssplit-mode": "sentence", "check-bytearray": "lex" not in files}
    path.write_text(json.dumps({pair: files}))
    command = ["node", str(SCRIPT), str(library), str(folder)]
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.splitlines()
