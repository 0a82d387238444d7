"""The frame of every command: flags, `--help`, one-line errors, exit codes."""

from __future__ import annotations

import io
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable

from absl import flags

from t2t_revival import registry
from t2t_revival.cli.support import command_line
from t2t_revival.errors import T2TError, Terminated

HELP_WIDTH = 100  # columns
EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143


def new_flags() -> flags.FlagValues:
    """Creates the flags of a command, with those that every command has."""
    values = flags.FlagValues()
    flags.DEFINE_bool("debug", False, "Show the whole traceback of an error.", flag_values=values)
    flags.DEFINE_bool("help", False, "Show this help.", short_name="h", flag_values=values)
    return values


def run(
    values: flags.FlagValues,
    usage: str,
    command: Callable[[flags.FlagValues], int | None],
    argv: list[str] | None = None,
) -> int:
    """Parses the command line, runs `command` and prints every failure as one line on stderr.

    Args:
        values: the command's flags (`new_flags`); values of an earlier call are reset.
        usage: printed by `--help` above the flags, whatever else is on the command line.
        command: called with the parsed flags; may return an exit status.
        argv: the command line, the program's name first; `None` takes `sys.argv`.

    Returns:
        The exit status: 0; 1 after an error; 2 after a wrong command line; 130 after Ctrl-C; 143 after
        SIGTERM, where a command keeps its work.
    """
    _print_all_characters()
    argv = sys.argv if argv is None else argv
    name = os.path.basename(argv[0]).removesuffix(".py")
    faults = command_line.parse(values, name, argv[1:])
    wants_help = values["help"].value
    if faults and not wants_help:
        return _fail_usage(name, faults)
    status = None
    try:
        if wants_help:
            print(f"{usage.strip()}\n\nFlags:\n{_describe(values)}")
        else:
            status = command(values)
        sys.stdout.flush()
    except KeyboardInterrupt as stop:
        status = EXIT_TERMINATED if isinstance(stop, Terminated) else EXIT_INTERRUPTED
        return _fail(name, str(stop) or "interrupted", status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    except (T2TError, OSError) as error:
        if values.debug:
            traceback.print_exc()
        return _fail(name, str(error), EXIT_ERROR)
    except Exception as error:
        fault = registry.users_fault(error)
        if values.debug or fault is None:
            raise
        return _fail(name, f"{fault} (--debug shows the whole traceback)", EXIT_ERROR)
    return status or 0


def _print_all_characters() -> None:
    """Prints characters that the terminal's encoding lacks as \\xe4 and the like, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _names(values: flags.FlagValues) -> list[str]:
    return sorted(name for name in values if name == values[name].name)


def _describe(values: flags.FlagValues) -> str:
    """Describes the flags, one paragraph each, in two columns."""
    heads = {name: f"  --{'[no]' if values[name].boolean else ''}{name}" for name in _names(values)}
    column = max(map(len, heads.values())) + 2
    return "\n".join(
        textwrap.fill(
            _explain(values[name]),
            HELP_WIDTH,
            initial_indent=head.ljust(column),
            subsequent_indent=" " * column,
            break_on_hyphens=False,
        )
        for name, head in heads.items()
    )


def _explain(flag: flags.Flag) -> str:
    if flag.default is None or flag.default == "":
        return flag.help
    default = str(flag.default).lower() if flag.boolean else flag.default
    return f"{flag.help} (default: {default})"


def _fail(name: str, message: str, status: int) -> int:
    sys.stdout.flush()
    print(f"{name}: error: {' '.join(message.splitlines())}", file=sys.stderr)
    return status


def _fail_usage(name: str, faults: list[str]) -> int:
    """Prints the faults of a command line: one in one line, several in a list."""
    if len(faults) == 1:
        return _fail(name, f"{faults[0]} (see {name} --help)", EXIT_USAGE)
    lines = "".join(f"\n  {' '.join(fault.splitlines())}" for fault in faults)
    sys.stdout.flush()
    print(f"{name}: error: wrong command line (see {name} --help):{lines}", file=sys.stderr)
    return EXIT_USAGE


def define_integer(
    name: str,
    default: int | None,
    text: str,
    *,
    flag_values: flags.FlagValues,
    lower_bound: int | None = None,
    upper_bound: int | None = None,
) -> None:
    """Defines a flag that takes a decimal integer; `flags.DEFINE_integer` also reads 0x10 and 0o20."""
    parser = _DecimalParser(lower_bound, upper_bound)
    flags.DEFINE(parser, name, default, text, flag_values, flags.ArgumentSerializer())


class _DecimalParser(flags.IntegerParser):
    """Parses an integer that is written in decimal digits."""

    def convert(self, argument: int | str) -> int:
        if isinstance(argument, str) and not re.fullmatch("[+-]?[0-9]+", argument):
            raise ValueError(f"{argument!r} is not an integer in decimal digits")
        return super().convert(argument)
