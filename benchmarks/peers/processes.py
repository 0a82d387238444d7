"""Processes of contestants, commands to them, and the load of the machine."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import Any

PEERS = Path(__file__).parent
BUSY_CPUS = 0.15  # others' CPU use above which a window counts as disturbed
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "PYTHONUNBUFFERED": "1",
}
Answer = dict[str, Any]  # of a contestant
Window = Answer


@dataclass(frozen=True)
class Entry:
    """A contestant of train_speed.py."""

    script: str  # in peers/
    python: str  # flag with its interpreter
    module: str  # that the interpreter must import
    precision: str


def training_command(entry: Entry, python: str, config: dict[str, Any], batches: Path) -> list[str]:
    """Returns the command that starts a contestant of train_speed.py.

    Args:
        entry: the contestant.
        python: its interpreter.
        config: fields of `peers.contestant.Config`.
        batches: file written by `write_batches`.
    """
    options = {**config, "precision": entry.precision}
    return [python, str(PEERS / entry.script), f"--config={json.dumps(options)}", f"--batches={batches}"]


class ContestantError(Exception):
    """A contestant failed; the message is its error, or ends with the last output of its process."""


class Process:
    """A contestant's process.

    Args:
        command: the command line.
        log: file for its stderr.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
        try:
            self.description = self._answer()
        except BaseException:
            self.stop()
            raise

    def ask(self, command: str) -> dict[str, Any]:
        """Sends one command and returns the answer."""
        assert self.process.stdin
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # _answer reports the log
        return self._answer()

    def window(self, steps: int) -> Window:
        """Trains for `steps` steps; see `watched`."""
        return self.watched(f"go {steps}")

    def watched(self, command: str) -> Window:
        """Sends a command and returns the answer, with the CPU use of others if the system reports it."""
        before = _busy_cpu_seconds()
        window = self.ask(command)
        after = _busy_cpu_seconds()
        if before is not None and after is not None:
            window["others_cpus"] = max(0.0, after - before - window["cpu_seconds"]) / window["seconds"]
        return window

    def stop(self) -> None:
        """Kills the process, and those that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, SIGKILL)
        self.process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if line:
            answer = json.loads(line)
            if "error" in answer:
                raise ContestantError(answer["error"])
            return answer
        status = self.process.wait()
        last = self.log.read_text(errors="replace").strip().splitlines()[-5:]
        raise ContestantError("\n".join([f"ended with status {status}; last output:", *last]))


def _busy_cpu_seconds() -> float | None:
    """Returns the machine's busy CPU seconds since its start, or `None` if they are not reported."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    user_to_steal = [int(ticks) for ticks in fields]
    idle, iowait = user_to_steal[3:5]
    return (sum(user_to_steal) - idle - iowait) / os.sysconf("SC_CLK_TCK")


def missing(flag: str, module: str, python: str | None) -> str | None:
    """Returns what a contestant lacks, in words, or `None`.

    Args:
        flag: name of the flag for its interpreter.
        module: module that the interpreter must import.
        python: value of the flag.
    """
    if not python:
        return f"--{flag} is missing (the interpreter of an environment with {module})"
    try:
        found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, text=True)
    except OSError as error:
        return f"--{flag}={python}: {error.strerror}"
    if found.returncode:
        return f"--{flag}={python} cannot import {module}: {found.stderr.strip().splitlines()[-1]}"
    return None


def wait_for_quiet(patience: float) -> None:
    """Waits until the machine is idle, at most `patience` seconds."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        before = _busy_cpu_seconds()
        time.sleep(1)
        after = _busy_cpu_seconds()
        if before is None or after is None or after - before < BUSY_CPUS:
            return
