"""Files that appear during a training, each with a step: checkpoints, translations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

SECONDS_BETWEEN_LOOKS = 10.0


class StepFile(Protocol):
    """A file with the number of updates after which it was written."""

    @property
    def step(self) -> int: ...

    @property
    def path(self) -> Path: ...


File = TypeVar("File", bound=StepFile)


@dataclass(frozen=True)
class Clock:
    """The time; tests replace it."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def stepfiles_iterator(
    list_files: Callable[[], Iterable[File]],
    wait_seconds: float = 0.0,
    min_steps: int = 0,
    clock: Clock | None = None,
    on_wait: Callable[[float], None] | None = None,
) -> Iterator[File]:
    """Yields each file once, the lowest step first, and then those that appear (T2T's `stepfiles_iterator`).

    Files of a lower step than one that was yielded are skipped, and files that were removed meanwhile.

    Args:
        list_files: lists the files that exist now; those of one step are yielded in its order.
        wait_seconds: time to wait for the next file, counted from when the last one was written, or from the
            start where there is none. With 0 only existing files are yielded.
        min_steps: files of lower steps are skipped.
        clock: the time.
        on_wait: called once for each wait, with the time in seconds since 1970 at which it ends.
    """
    clock = clock or Clock()
    yielded: set[Path] = set()
    deadline, min_step, waits = clock.now() + wait_seconds, min_steps, False
    while True:
        files = [file for file in list_files() if file.step >= min_step and file.path not in yielded]
        if files:
            file = min(files, key=lambda file: file.step)
            yielded.add(file.path)
            try:
                written = file.path.stat().st_ctime
            except FileNotFoundError:
                continue
            deadline, min_step, waits = written + wait_seconds, file.step, False
            yield file
            continue
        left = deadline - clock.now()
        if left <= 0 or not wait_seconds:  # the clock of a file's machine may be ahead
            return
        if on_wait and not waits:
            on_wait(deadline)
        waits = True
        clock.sleep(min(left, SECONDS_BETWEEN_LOOKS))
