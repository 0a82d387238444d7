"""Runs a command, its name and flags as arguments, in a process that cannot import TensorFlow."""

from tests.support.without_tensorflow import block_tensorflow

block_tensorflow()

# ruff: noqa: E402
import importlib
import sys

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    name = sys.argv[0].removeprefix("t2t-").replace("-", "_")
    sys.exit(importlib.import_module(f"t2t_revival.cli.{name}").main())
