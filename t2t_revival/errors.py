"""Exceptions for faults that a user can cause and repair."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class T2TError(Exception):
    """Bad input. The message is one line: what is wrong, where, and what to do.

    Raised where the fault is found; the commands print it in one place (`cli/support`) and exit with 1.
    """


class LineError(T2TError):
    """A fault in a line of an input; the message begins with the line's number."""

    def __init__(self, number: int, fault: str) -> None:
        self.number, self.fault = number, fault
        super().__init__(f"line {number}: {fault}")


class Terminated(KeyboardInterrupt):
    """SIGTERM was received: the command stops as after Ctrl-C, with the exit status of SIGTERM."""


class HungUp(KeyboardInterrupt):
    """SIGHUP was received: the terminal is gone. The command stops, with the exit status of SIGHUP."""


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Returns at most three known names that may be meant: those that begin with it, then similar ones.

    If there are neither, those that contain it.
    """
    names = sorted(known)
    begun = [other for other in names if name and other.startswith(name)]
    near = [*begun, *difflib.get_close_matches(name, names, n=3, cutoff=0.5)]
    return [*dict.fromkeys(near or [other for other in names if len(name) > 2 and name in other])][:3]


def did_you_mean(name: str, known: Iterable[str], kind: str) -> str:
    """Formats the error of an unknown `name` of a `kind` such as "hparams set", with similar known ones."""
    names = sorted(known)
    if near := similar(name, names):
        return f"unknown {kind} {name!r}; did you mean {' or '.join(near)}?"
    return f"unknown {kind} {name!r}; known: {', '.join(names)}"
