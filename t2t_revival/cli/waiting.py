"""The flags of commands that wait for files while a training goes on, and the waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from absl import flags

from t2t_revival.cli import common
from t2t_revival.cli.lines import say
from t2t_revival.following import Clock, File, follow

CLOCK = Clock()  # tests put another in its place


def define(values: flags.FlagValues, what: str) -> None:
    """Adds the flags to those of a command that waits for `what`, such as "checkpoint"."""
    common.define_integer(
        "wait_minutes",
        0,
        f"How long to wait for the next {what}, counted from when the last one was written: "
        "--save_checkpoints_secs / 60 of the training and some reserve. 0: what is there is all.",
        lower_bound=0,
        flag_values=values,
    )


def define_min_steps(values: flags.FlagValues, what: str) -> None:
    """Adds `--min_steps`, for a command that takes each `what` from the first on."""
    common.define_integer(
        "min_steps", 0, f"Leave out each {what} of fewer steps.", lower_bound=0, flag_values=values
    )


def following(
    listed: Callable[[], Iterable[File]], minutes: int, what: str, min_steps: int = 0
) -> Iterator[File]:
    """See `follow`; says on stderr until when it waits for `what`, such as "a checkpoint in DIR"."""

    def on_wait(until: float) -> None:
        say(f"waiting for {what} until {time.strftime('%H:%M:%S', time.localtime(until))}")

    return follow(listed, 60.0 * minutes, min_steps, CLOCK, on_wait)
