"""The driver's side of a contestant: its process, the conversation with it, the machine's load meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PEERS = Path(__file__).parent
BUSY_CPUS = 0.15  # CPU used by others from which a window counts as disturbed
Answer = dict[str, Any]  # of a contestant
Window = Answer


@dataclass(frozen=True)
class Entry:
    """A contestant as the command line knows it."""

    script: str  # in peers/
    python: str  # the flag that names its interpreter
    module: str  # what must be importable there
    precision: str


def training_command(entry: Entry, python: str, config: dict[str, Any], batches: Path) -> list[str]:
    """What starts a contestant of train_speed.py.

    Args:
        entry: which contestant.
        python: its interpreter.
        config: the fields of `peers.contestant.Config`.
        batches: the file of `write_batches`.
    """
    options = {**config, "precision": entry.precision}
    return [python, str(PEERS / entry.script), f"--config={json.dumps(options)}", f"--batches={batches}"]


class ContestantError(Exception):
    """A contestant's process ended; the message ends with what it said last."""


class Process:
    """A contestant's process and the conversation with it.

    Args:
        command: what starts it.
        log: where its stderr goes.
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
                env=_environment(),
            )
        self.description = self._answer()

    def ask(self, command: str) -> dict[str, Any]:
        """Sends one command, waits for its answer."""
        assert self.process.stdin
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the log that _answer shows says why
        return self._answer()

    def window(self, steps: int) -> Window:
        """Trains `steps` steps; see `watched`."""
        return self.watched(f"go {steps}")

    def watched(self, command: str) -> Window:
        """The answer to a command, with the CPU that others used meanwhile, where the system tells."""
        before = _busy_cpu_seconds()
        window = self.ask(command)
        after = _busy_cpu_seconds()
        if before is not None and after is not None:
            window["others_cpus"] = max(0.0, after - before - window["cpu_seconds"]) / window["seconds"]
        return window

    def stop(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        status = self.process.wait()
        last = self.log.read_text(errors="replace").strip().splitlines()[-5:]
        raise ContestantError("\n".join([f"ended with status {status}; its last words:", *last]))


def _environment() -> dict[str, str]:
    """This one, without what TensorFlow 2 leaves in it for its children, which tensor2tensor's is none of."""
    inherited = {name: value for name, value in os.environ.items() if name != "TF2_BEHAVIOR"}
    return {
        **inherited,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "PYTHONUNBUFFERED": "1",
    }


def _busy_cpu_seconds() -> float | None:
    """CPU seconds that the whole machine has worked since it started; None where the system does not tell."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    user_to_steal = [int(ticks) for ticks in fields]
    idle, iowait = user_to_steal[3:5]
    return (sum(user_to_steal) - idle - iowait) / os.sysconf("SC_CLK_TCK")


def missing(flag: str, module: str, python: str | None) -> str | None:
    """Why a contestant cannot take part, in words; None where it can.

    Args:
        flag: of the command line, which names its interpreter.
        module: what must be importable there.
        python: what the flag was given.
    """
    if not python:
        return f"--{flag} is not given (the interpreter of an environment with {module})"
    try:
        found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, text=True)
    except OSError as error:
        return f"--{flag}={python}: {error.strerror}"
    if found.returncode:
        return f"--{flag}={python} cannot import {module}: {found.stderr.strip().splitlines()[-1]}"
    return None


def wait_for_quiet(patience: float) -> None:
    """Returns once the machine idles, after `patience` seconds at most."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        before = _busy_cpu_seconds()
        time.sleep(1)
        after = _busy_cpu_seconds()
        if before is None or after is None or after - before < BUSY_CPUS:
            return
