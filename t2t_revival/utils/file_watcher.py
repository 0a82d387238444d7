"""Files that appear while a training goes on, each with a step: checkpoints, translations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

SECONDS_BETWEEN_LOOKS = 10.0


class Stepped(Protocol):
    """A file with a step."""

    @property
    def step(self) -> int:
        """Updates that it stands for."""

    @property
    def path(self) -> Path:
        """Where it is."""


File = TypeVar("File", bound=Stepped)


@dataclass(frozen=True)
class Clock:
    """The time; tests have one of their own."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def follow(
    listed: Callable[[], Iterable[File]],
    wait_seconds: float = 0.0,
    min_steps: int = 0,
    clock: Clock | None = None,
    on_wait: Callable[[float], None] | None = None,
) -> Iterator[File]:
    """Gives each file once, the lowest step first, and then those that appear (T2T's `stepfiles_iterator`).

    A file of a lower step than one that was given is passed over; so is one that is gone when its turn comes.

    Args:
        listed: the files that are there now; of those of one step the first is given first.
        wait_seconds: how long to wait for the next one, counted from when the last given one was written,
            or from the start where there is none; 0: what is there is all.
        min_steps: files of lower steps are passed over.
        clock: what says the time, and sleeps.
        on_wait: is told, once for each wait, the time in seconds since 1970 at which it ends.
    """
    clock = clock or Clock()
    given: set[Path] = set()
    until, least, waits = clock.now() + wait_seconds, min_steps, False
    while True:
        files = [file for file in listed() if file.step >= least and file.path not in given]
        if files:
            file = min(files, key=lambda file: file.step)
            given.add(file.path)
            try:
                written = file.path.stat().st_ctime
            except FileNotFoundError:
                continue
            until, least, waits = written + wait_seconds, file.step, False
            yield file
            continue
        left = until - clock.now()
        if left <= 0:
            return
        if on_wait and not waits:
            on_wait(until)
        waits = True
        clock.sleep(min(left, SECONDS_BETWEEN_LOOKS))
