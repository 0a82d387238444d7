"""Exports of the best checkpoint while a training goes on (`t2t-trainer --export_best`)."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping

from t2t_revival.cli.support.messages import say
from t2t_revival.cli.support.subcommand import start_command
from t2t_revival.errors import CommandLine

EXPORTER = "t2t-exporter"


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
