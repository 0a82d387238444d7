"""The one format of results: JSON with machine, commit, command and a list of measurements."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("jax", "keras", "tensorflow", "torch", "ctranslate2")


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Adds `--out`, the file to write; that it cannot be written is an error before anything is measured."""
    parser.add_argument("--out", type=_writable, help="file of results to write, JSON")


def _writable(name: str) -> Path:
    try:
        open(name, "a").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error.strerror}") from error
    return Path(name)


def write(path: Path | None, results: list[dict[str, Any]], **about: Any) -> None:
    """Writes results; without a path, nothing.

    Args:
        path: value of `--out`.
        results: a dictionary for each measurement, figures under names with their unit.
        about: what holds for all of them, such as the device.
    """
    if path:
        path.write_text(json.dumps({**machine(), **about, "results": results}, indent=1) + "\n")


def machine() -> dict[str, Any]:
    """Returns what the figures were measured with."""
    models = re.findall(r"^model name\s*: (.+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "commit": subprocess.getoutput(f"git -C '{ROOT}' rev-parse HEAD"),
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "command": sys.argv,
        "cpus": os.cpu_count(),
        "processor": models[0] if models else platform.machine(),
        "python": platform.python_version(),
        "libraries": versions,
    }
