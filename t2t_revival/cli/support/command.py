"""The frame of every command: command line, `--help`, one-line errors, exit codes."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic

from t2t_revival.cli.support.parser import F, Parser
from t2t_revival.errors import T2TError
from t2t_revival.utils import native_log
from t2t_revival.utils.signals import INTERRUPTIONS, terminable
from t2t_revival.utils.streams import Tolerant, is_broken_pipe, reserve_descriptors, tolerant

EXIT_ERROR, EXIT_USAGE = 1, 2
EXIT_SIGNAL = 128  # and the number of the signal


@dataclass(frozen=True)
class Command(Generic[F]):
    """A command; a module's `main`, which setup.py names and with which the module ends, is one.

    Where the module is the program, as by `python -m t2t_revival.cli.decoder`, the command runs at once.

    Attributes:
        flags: the class of the command's flags.
        run: called with the parsed flags; may return an exit status.
        text: the module's docstring: a line for readers of the code, then the usage.
    """

    flags: type[F]
    run: Callable[[F], int | None]
    text: str

    def __post_init__(self) -> None:
        if self.run.__module__ == "__main__":
            sys.exit(self())

    @property
    def usage(self) -> str:
        """Printed by `--help` above the flags, whatever else is on the command line."""
        return self.text.partition("\n\n")[2].strip()

    def __call__(self, argv: list[str] | None = None) -> int:
        """Parses the command line, runs the command and prints every failure as one line on stderr.

        Args:
            argv: the command line, the program's name first; `None` takes `sys.argv`.

        Returns:
            The exit status: 0; 1 after an error; 2 after a wrong command line; 129, 130 and 143 after SIGHUP,
            Ctrl-C and SIGTERM.
        """
        argv = sys.argv if argv is None else argv
        name = os.path.basename(argv[0]).removesuffix(".py")
        _print_all_characters()
        reserve_descriptors()
        os.environ.setdefault(native_log.LEVEL, native_log.DEFAULT_LEVEL)
        with tolerant() as out:
            try:
                with terminable():
                    return self._run(name, argv[1:], out)
            except KeyboardInterrupt as stop:
                number = next(number for number, kind in INTERRUPTIONS.items() if kind is type(stop))
                return _fail(name, str(stop) or "interrupted", EXIT_SIGNAL + number)
            except BrokenPipeError as error:
                if is_broken_pipe(sys.stdout):
                    return EXIT_ERROR
                return _fail(name, f"cannot write {error.filename or 'a pipe'}: nobody reads it", EXIT_ERROR)

    def parse(self, argv: list[str]) -> F:
        """Returns the flags of a command line, the program's name first.

        Raises:
            T2TError: it has faults.
        """
        parser = Parser(self.flags)
        if faults := parser.parse(argv[0], argv[1:]):
            raise T2TError("; ".join(faults))
        return parser.flags()

    def _run(self, name: str, words: list[str], out: Tolerant) -> int:
        parser = Parser(self.flags)
        faults = parser.parse(name, words)
        wants_help, debug = (parser.table[flag].value for flag in ("help", "debug"))
        if faults and not wants_help:
            return _fail_usage(name, faults)
        status = None
        try:
            if wants_help:
                print(f"{self.usage}\n\nFlags:\n{parser.describe()}")
            else:
                status = self._work(parser.flags())
            out.flush()
            if out.fault and not status:
                raise T2TError(f"cannot write the standard output: {out.fault.strerror}")
        except BrokenPipeError:
            raise
        except (T2TError, OSError) as error:
            if debug:
                traceback.print_exc()
            usr_dir = parser.table["t2t_usr_dir"].value if "t2t_usr_dir" in parser.table else None
            message = error.message(usr_dir) if isinstance(error, T2TError) else str(error)
            return _fail(name, message, EXIT_ERROR)
        except Exception as error:
            if isinstance(error, RuntimeError) and "home directory" in str(error):  # pathlib's, of ~name/data
                return _fail(
                    name, "a path begins with ~ and the name of no user: write all of it", EXIT_ERROR
                )
            raise
        return status or 0

    def _work(self, flags: F) -> int | None:
        if flags.debug:
            os.environ[native_log.LEVEL] = "0"
        if flags.answer():
            return 0
        flags.check()
        return self.run(flags)


def _print_all_characters() -> None:
    """Prints characters that the terminal's encoding lacks as \\xe4 and the like, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(name: str, message: str, status: int) -> int:
    for stream, text in (
        (sys.stdout, ""),
        (sys.stderr, f"{name}: error: {' '.join(message.splitlines())}\n"),
    ):
        with suppress(BrokenPipeError):  # nobody reads it any more
            print(text, end="", file=stream, flush=True)
    return status


def _fail_usage(name: str, faults: list[str]) -> int:
    """Prints the faults of a command line: one in one line, several in a list."""
    if len(faults) == 1:
        return _fail(name, f"{faults[0]} (see {name} --help)", EXIT_USAGE)
    lines = "".join(f"\n  {' '.join(fault.splitlines())}" for fault in faults)
    print(f"{name}: error: wrong command line (see {name} --help):{lines}", file=sys.stderr)
    return EXIT_USAGE
