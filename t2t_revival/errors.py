"""The exception for what a user can cause and mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class T2TError(Exception):
    """Bad input. The message is one clear line that says what is wrong and the way out.

    Raised where the fault is seen; the commands print it in one place (`cli/common.py`) and exit with 1.
    """


class LineError(T2TError):
    """A line of an input that cannot be used: its number, and what is wrong with it."""

    def __init__(self, number: int, what: str) -> None:
        super().__init__(f"line {number}: {what}")


class Terminated(KeyboardInterrupt):
    """SIGTERM came: the command stops as after Ctrl-C, with the exit status of SIGTERM."""


def did_you_mean(name: str, known: Iterable[str], kind: str) -> str:
    """One line that says that `name` is no known `kind`, with the nearest known names.

    Args:
        name: what the user wrote.
        known: the names that exist.
        kind: what is named, as in "problem" or "hparams set".
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"unknown {kind} {name!r}; did you mean {' or '.join(near)}?"
    return f"unknown {kind} {name!r}; known: {', '.join(names)}"
