"""Exceptions for faults that a user can cause and repair."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class CommandLine:
    """A command to run: what an error proposes, or the next step.

    Args:
        program: such as "t2t-trainer".
        **flags: values by name, in the order in which they are printed. A flag is left out where its value is
            None, False, "" or an empty list. It has no value where that is True, and commas between the items
            of a list.

    Example:
        str(CommandLine("t2t-datagen", problem="translate_ende", data_dir="my data"))
        # t2t-datagen --problem=translate_ende --data_dir='my data'
    """

    def __init__(self, program: str, **flags: object) -> None:
        self.program, self.flags = program, flags

    def __str__(self) -> str:
        return self.message()

    def message(self, usr_dir: str | None = None) -> str:
        """Formats the command to be pasted into a shell, in this folder; `usr_dir` is its `--t2t_usr_dir`."""
        flags = self.flags | ({"t2t_usr_dir": usr_dir} if usr_dir else {})
        values = {name: value for name, value in flags.items() if value or type(value) in (int, float)}
        return " ".join([self.program, *(f"--{name}{_value(value)}" for name, value in values.items())])


def _value(value: object) -> str:
    if value is True:
        return ""
    if isinstance(value, Iterable) and not isinstance(value, str):
        value = ",".join(map(str, value))
    return f"={shlex.quote(str(value))}"


class T2TError(Exception):
    """Bad input. The message is one line: what is wrong, where, and what to do.

    Raised where the fault is found; the commands print it in one place (`cli/support`) and exit with 1.

    Attributes:
        args: parts of the message: texts, other errors, and commands to run.
    """

    def __str__(self) -> str:
        return self.message()

    def message(self, usr_dir: str | None = None) -> str:
        """Joins the parts; `usr_dir` is the `--t2t_usr_dir` of commands among them."""
        return "".join(
            part.message(usr_dir) if isinstance(part, CommandLine | T2TError) else str(part)
            for part in self.args
        )


class OutOfMemoryError(T2TError):
    """A device has too little memory for a batch."""


class LineError(T2TError):
    """A fault in a line of an input; the message begins with the line's number."""

    def __init__(self, number: int, fault: str) -> None:
        self.number, self.fault = number, fault
        super().__init__(f"line {number}: {fault}")


@contextmanager
def at(where: str) -> Iterator[None]:
    """Puts a place, such as a file, before the message of a `T2TError` of the block."""
    try:
        yield
    except T2TError as error:
        raise T2TError(f"{where}: ", error) from error


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
