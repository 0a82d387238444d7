"""Commands that process the files of a running training, and wait for these files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from t2t_revival.cli.support.messages import say

MIN_STEPS = "Skip each checkpoint of fewer steps."
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


CLOCK = Clock()  # tests put another in its place


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


def waiting_for(kind: str) -> str:
    """The help of a flag of the minutes to wait for the next `kind` of file, such as "checkpoint"."""
    return (
        f"Minutes to wait for the next {kind}, counted from when the last one was written; should exceed the "
        "training's --save_checkpoints_secs / 60. 0 does not wait."
    )


def step_files(
    list_files: Callable[[], Iterable[File]], minutes: int, kind: str, min_steps: int = 0
) -> Iterator[File]:
    """`stepfiles_iterator` that prints how long it waits for `kind`, such as "a checkpoint in DIR"."""

    def on_wait(until: float) -> None:
        say(f"waiting for {kind} until {time.strftime('%H:%M:%S', time.localtime(until))}")

    return stepfiles_iterator(list_files, 60.0 * minutes, min_steps, CLOCK, on_wait)
