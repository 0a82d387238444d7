"""Figures of a session, in a file that a killed process leaves valid, and the time that is left."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

Line = dict[str, Any]


class Record:
    """Lines of JSON, one for each piece of a session that is measured, or has failed.

    Args:
        path: of the file; made if it is missing.
        common: figures that every new line has too.
    """

    def __init__(self, path: Path, **common: Any) -> None:
        self._path, self._common = path, common
        self.lines: list[Line] = []
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines():
            with suppress(json.JSONDecodeError):  # the last line of a process that was killed
                self.lines.append(json.loads(line))
        self._begins = "\n" if text and not text.endswith("\n") else ""

    def add(self, piece: str, **figures: Any) -> Line:
        """Writes a line to the disk, and returns it."""
        line = {"piece": piece, **figures, **self._common}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{self._begins}{json.dumps(line)}\n")
            file.flush()
            os.fsync(file.fileno())
        self._begins = ""
        self.lines.append(line)
        return line

    def forget_failures(self) -> None:
        """Has pieces that failed be measured again; their lines stay in the file."""
        self.lines = [line for line in self.lines if "failed" not in line]

    def all(self, piece: str, **wanted: Any) -> list[Line]:
        """Returns the lines of a piece that have all these figures, the oldest first."""
        wanted |= {"piece": piece}
        return [line for line in self.lines if wanted.items() <= line.items()]

    def find(self, piece: str, **wanted: Any) -> Line | None:
        """Returns the newest of these lines, or `None`."""
        return next(reversed(self.all(piece, **wanted)), None)


class TimeIsUp(Exception):
    """A piece takes too long, or the session is over."""


class Clock:
    """The time of a session.

    Args:
        seconds: until its end.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self._end - time.monotonic()

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Ends the block after some seconds, or at the session's end.

        Raises:
            TimeIsUp: it was not at its end.
        """

        def end(number: int, frame: FrameType | None) -> None:
            raise TimeIsUp(f"took more than {seconds:.0f} s")

        if self.left <= 0:
            raise TimeIsUp("the session is over")
        before = signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, min(seconds, self.left))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def say(line: str) -> None:
    """Prints a line of progress to stderr."""
    print(line, file=sys.stderr, flush=True)
