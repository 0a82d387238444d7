"""Commands of the package, each in a process of its own."""

import os
import subprocess
import sys

TIMEOUT = 600  # seconds


def run(command: str, *flags: str, stdin: str | None = None, status: int = 0) -> subprocess.CompletedProcess:
    """Runs a command in a process of its own and checks its exit status."""
    module = command.removeprefix("t2t-").replace("-", "_")
    done = subprocess.run(
        [sys.executable, "-m", f"t2t_revival.cli.{module}", *flags],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert done.returncode == status, done.stderr
    return done
