"""Commands that process the files of a running training, and wait for these files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from t2t_revival.checkpoints.directory import Checkpoint, list_checkpoints
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


now, sleep = time.time, time.sleep  # tests replace them


def waiting_for(kind: str) -> str:
    """The help of a flag of the minutes to wait for the next `kind` of file, such as "checkpoint"."""
    return (
        f"Minutes to wait for the next {kind}, counted from when the last one was written; should exceed the "
        "training's --save_checkpoints_secs / 60. 0 does not wait."
    )


def new_checkpoints(folder: Path, minutes: float, min_steps: int) -> Iterator[Checkpoint]:
    """Yields the checkpoints of a training, as `step_files`, without its averages."""
    kind = f"a checkpoint in {folder}"
    return step_files(lambda: list_checkpoints(folder), minutes, kind, min_steps)


def step_files(
    list_files: Callable[[], Iterable[File]], minutes: float, kind: str, min_steps: int = 0
) -> Iterator[File]:
    """Yields each file once, the lowest step first, and then those that appear (T2T's `stepfiles_iterator`).

    Files of a lower step than one that was yielded are skipped, and files that were removed meanwhile.

    Args:
        list_files: lists the files that exist now; those of one step are yielded in its order.
        minutes: time to wait for the next file, counted from when the last one was written, or from the start
            where there is none. With 0 only existing files are yielded.
        kind: what is waited for, such as "a checkpoint in DIR", which is printed once for each wait.
        min_steps: files of lower steps are skipped.
    """
    yielded: set[Path] = set()
    deadline, min_step, waits = now() + 60 * minutes, min_steps, False
    while True:
        files = [file for file in list_files() if file.step >= min_step and file.path not in yielded]
        if files:
            file = min(files, key=lambda file: file.step)
            yielded.add(file.path)
            try:
                written = file.path.stat().st_ctime
            except FileNotFoundError:
                continue
            deadline, min_step, waits = written + 60 * minutes, file.step, False
            yield file
            continue
        left = deadline - now()
        if left <= 0 or not minutes:  # the clock of a file's machine may be ahead
            return
        if not waits:
            say(f"waiting for {kind} until {time.strftime('%H:%M:%S', time.localtime(deadline))}")
        waits = True
        sleep(min(left, SECONDS_BETWEEN_LOOKS))
