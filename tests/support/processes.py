"""Processes that start with TensorFlow imported: each is forked from one that has done nothing else."""

from __future__ import annotations

import importlib
import multiprocessing
import multiprocessing.forkserver
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

TIMEOUT = 300  # seconds
_FORKING = multiprocessing.get_context("forkserver")
# The first imports the others; where pytest was started elsewhere than here, it is not found.
PRELOADED = [
    "tests.support.preloaded",
    "t2t_revival.experiment",
    "t2t_revival.decoding.engines.tensorflow_engine",
]


def start_server() -> None:
    """Starts the process to fork from, before the package starts one without TensorFlow to make data."""
    _FORKING.set_forkserver_preload(PRELOADED)
    multiprocessing.forkserver.ensure_running()


class Process:
    """A function that runs in a process of its own, whose output can be read meanwhile.

    Args:
        folder: gets the files "stdout" and "stderr"; made where it is missing.
        function: called there; what it returns is the exit status.
        arguments: its positional arguments.
        environment: variables to set or, by None, to take out.
    """

    def __init__(
        self,
        folder: Path,
        function: Callable[..., int | None],
        arguments: Iterable[Any],
        environment: dict[str, str | None] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = folder / "stdout", folder / "stderr"
        for file in self._files:
            file.touch()
        changed = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", **(environment or {})}
        known = {name: value for name, value in changed.items() if value is not None}
        self._process = _FORKING.Process(
            target=_call, args=(function, tuple(arguments), os.getcwd(), known, self._files), daemon=True
        )
        start_server()
        self._process.start()

    @property
    def out(self) -> str:
        """The standard output so far."""
        return self._files[0].read_text(encoding="utf-8")

    @property
    def err(self) -> str:
        """The standard error so far."""
        return self._files[1].read_text(encoding="utf-8")

    @property
    def said(self) -> str:
        """Both streams so far, one after the other."""
        return self.out + self.err

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process.pid is not None
        return self._process.pid

    def wait_for(self, pattern: str, times: int = 1) -> None:
        """Waits until lines match so often."""
        until = time.monotonic() + TIMEOUT
        while len(re.findall(pattern, self.said, re.MULTILINE)) < times:
            assert self._process.is_alive(), self.said
            assert time.monotonic() < until, self.said
            time.sleep(0.05)

    def poll(self) -> int | None:
        """Returns the exit status, or `None` before the end."""
        return self._process.exitcode

    def wait(self, timeout: float = TIMEOUT) -> int:
        """Waits for the end; returns the exit status, of a signal as a negative number."""
        self._process.join(timeout)
        assert self._process.exitcode is not None, f"still alive after {timeout} s: {self.said}"
        return self._process.exitcode

    def end(self, status: int = 0) -> str:
        """Waits for the end, which must have this status; returns what was said."""
        assert self.wait() == status, self.said
        assert "Traceback" not in self.said
        return self.said

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        os.kill(self.pid, number)

    def interrupt(self) -> str:
        """Sends what Ctrl-C does, which the last line must say, with what is kept; returns what was said."""
        self.send_signal(signal.SIGINT)
        said = self.end(130)
        assert re.search(r": error: interrupted(; .* the same command resumes)?$", said.splitlines()[-1]), (
            said
        )
        return said

    def kill(self) -> None:
        """Kills the process and waits for its end."""
        self._process.kill()
        self._process.join()


def start_command(
    folder: Path, name: str, *flags: str, environment: dict[str, str | None] | None = None
) -> Process:
    """Starts a command of the package; `folder` gets its output."""
    return Process(folder, run_command, [name, *flags], environment)


def run_command(name: str, *flags: object) -> int:
    """Runs a command of the package in this process; returns its exit status."""
    module = name.removeprefix("t2t-").replace("-", "_")
    return importlib.import_module(f"t2t_revival.cli.{module}").main([name, *map(str, flags)])


def _call(
    function: Callable[..., int | None],
    arguments: tuple[Any, ...],
    folder: str,
    environment: dict[str, str],
    files: tuple[Path, Path],
) -> None:
    for descriptor, file in enumerate(files, 1):
        opened = os.open(file, os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background, where tests may run
    sys.exit(function(*arguments))
