"""Commands of the package as a user runs them."""

import contextlib
import io
import subprocess
import tempfile
from pathlib import Path
from unittest import mock

from tests.support.processes import run_command, start_command


def run_process(command: str, *flags: str) -> subprocess.CompletedProcess:
    """Runs a command in a process of its own and checks its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        process = start_command(Path(folder), command, *flags)
        process.end()
        return subprocess.CompletedProcess([command, *flags], 0, process.out, process.err)


def run(command: str, *flags: str, stdin: str = "") -> subprocess.CompletedProcess:
    """Runs a command in this process, which has TensorFlow imported, and checks its exit status."""
    typed = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with mock.patch("sys.stdin", typed), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run_command(command, *flags)
    stdout, stderr = (stream.buffer.getvalue().decode() for stream in (out, err))
    assert status == 0, stderr
    return subprocess.CompletedProcess([command, *flags], status, stdout, stderr)
