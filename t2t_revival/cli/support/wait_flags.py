"""Commands that process the files of a running training, and wait for these files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from t2t_revival.cli.support.messages import say
from t2t_revival.utils.file_watcher import Clock, File, stepfiles_iterator

MIN_STEPS = "Skip each checkpoint of fewer steps."
CLOCK = Clock()  # tests put another in its place


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
