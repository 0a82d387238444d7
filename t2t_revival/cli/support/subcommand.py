"""Commands of this project in processes of their own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from t2t_revival.cli.support.messages import say
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.utils.signals import INTERRUPTIONS, ending_signals, handling

EXPORTER = "t2t-exporter"


def run_command(name: str, flags: Mapping[str, object]) -> None:
    """Prints a command and runs it in a process of its own.

    Signals that would end this process are forwarded to the command, so that it can save its work; those that
    this process ignores, as SIGHUP under nohup, are ignored by both.

    Flags of value `None` are left out.

    Raises:
        T2TError: the command failed; it has printed its own message.
        KeyboardInterrupt: the command or this process was interrupted; `Terminated` and `HungUp` are too.
    """
    say("$ " + shlex.join([name, *_arguments(flags)]))
    received: list[signal.Signals] = []
    heeded = [number for number in ending_signals() if signal.getsignal(number) is not signal.SIG_IGN]
    with handling(dict.fromkeys(heeded, lambda number, frame: received.append(signal.Signals(number)))):
        process, forwarded, status = start_command(name, flags), 0, None
        while status is None:
            for number in received[forwarded:]:
                process.send_signal(number)
                forwarded += 1
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(0.1)
    if received:
        raise INTERRUPTIONS[received[0]]
    if status in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if status:
        raise T2TError(f"{name} failed with exit status {status}; see its message above")


def start_command(name: str, flags: Mapping[str, object], **settings: Any) -> subprocess.Popen[bytes]:
    """Starts a command in a process of its own, which Ctrl-C does not reach; `settings` are of `Popen`."""
    module = "t2t_revival.cli." + name.removeprefix("t2t-").replace("-", "_")
    code = f"import sys; from {module} import main; sys.argv[0] = {name!r}; sys.exit(main())"
    command = [sys.executable, "-c", code, *_arguments(flags)]
    return subprocess.Popen(command, start_new_session=True, **settings)


def _arguments(flags: Mapping[str, object]) -> list[str]:
    return [f"--{flag}={value}" for flag, value in flags.items() if value is not None]


class BestExport:
    """Runs t2t-exporter beside the training, one at a time, and without its GPU; a context manager.

    Args:
        model: flags of t2t-exporter that name the model.
    """

    def __init__(self, model: Mapping[str, object]) -> None:
        self._flags = {**model, "checkpoint": "best"}
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  `__exit__` closes it
        self._is_due = False

    def __enter__(self) -> BestExport:
        return self

    def __exit__(self, *error: object) -> None:
        """Ends a running export, which leaves nothing behind; names the command of one that is missing."""
        with self._errors:
            if self._process and self._process.poll() is None:
                self._process.terminate()
                self._process.wait()
                self._is_due = True
            elif self._process:
                self._report(self._process)
            if self._is_due:
                say(f"the best checkpoint is not exported: {CommandLine(EXPORTER, **self._flags)}")

    def ask(self) -> None:
        """Exports the best checkpoint, after the export that is running."""
        self._is_due = True
        self.advance()

    def advance(self) -> None:
        """Reports an export that has ended, and starts the next one."""
        if self._process:
            if self._process.poll() is None:
                return
            self._report(self._process)
            self._process = None
        if self._is_due:
            self._is_due = False
            environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow"}
            streams = {"stdout": subprocess.DEVNULL, "stderr": self._errors}
            self._process = start_command(EXPORTER, self._flags, env=environment, **streams)

    def finish(self) -> None:
        """Waits until the best checkpoint is exported."""
        while self._process:
            say("waiting for the export of the best checkpoint")
            self._process.wait()
            self.advance()  # to the next, or to none

    def _report(self, ended: subprocess.Popen[bytes]) -> None:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        self._errors.seek(0)
        self._errors.truncate()
        if ended.returncode:
            reason = next((line for line in reversed(lines) if line.startswith(EXPORTER)), "no message")
            say(f"warning: {reason}; again: {CommandLine(EXPORTER, **self._flags)}")
        else:
            say("exported the best checkpoint")
