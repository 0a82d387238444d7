"""Commands of the package as a user runs them."""

import contextlib
import importlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from unittest import mock

TIMEOUT = 600  # seconds


def run_process(command: str, *flags: str) -> subprocess.CompletedProcess:
    """Runs a command in a process of its own and checks its exit status."""
    done = subprocess.run(
        [sys.executable, "-m", f"t2t_revival.cli.{_module(command)}", *flags],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert done.returncode == 0, done.stderr
    return done


def run(command: str, *flags: str, stdin: str = "") -> subprocess.CompletedProcess:
    """Runs a command in this process, which has TensorFlow imported, and checks its exit status."""
    main: Callable[[list[str]], int] = importlib.import_module(f"t2t_revival.cli.{_module(command)}").main
    typed = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with mock.patch("sys.stdin", typed), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([command, *flags])
    stdout, stderr = (stream.buffer.getvalue().decode() for stream in (out, err))
    assert status == 0, stderr
    return subprocess.CompletedProcess([command, *flags], status, stdout, stderr)


def _module(command: str) -> str:
    return command.removeprefix("t2t-").replace("-", "_")
