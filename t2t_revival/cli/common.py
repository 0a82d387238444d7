"""What all commands share: flags, one-line errors, exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from absl import flags

from t2t_revival.errors import T2TError

EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def new_flags() -> flags.FlagValues:
    """The flags of one command, with the flags that every command has."""
    values = flags.FlagValues()
    flags.DEFINE_bool("debug", False, "Show the whole traceback of an error.", flag_values=values)
    flags.DEFINE_bool("help", False, "Show this help.", short_name="h", flag_values=values)
    return values


def run(
    values: flags.FlagValues,
    usage: str,
    command: Callable[[flags.FlagValues], None],
    argv: list[str] | None = None,
) -> int:
    """Parses the command line, runs `command` and turns every failure into one line on stderr.

    Args:
        values: the command's flags (`new_flags`).
        usage: what `--help` prints above the flags.
        command: takes the parsed flags, does the work.
        argv: the command line with the program's name first; `sys.argv` if not given.

    Returns:
        The exit status: 0; 1 after an error; 2 after a wrong command line; 130 after Ctrl-C.
    """
    argv = sys.argv if argv is None else argv
    name = os.path.basename(argv[0]).removesuffix(".py")
    try:
        positional = values(argv)[1:]
    except flags.Error as error:
        return _fail(name, f"{error} (see {name} --help)", EXIT_USAGE)
    if values.help:
        print(f"{usage.strip()}\n\nFlags:\n{values.main_module_help() or values.get_help()}")
        return 0
    if positional:
        return _fail(name, f"unexpected argument {positional[0]!r} (see {name} --help)", EXIT_USAGE)
    if not values.debug:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        command(values)
    except KeyboardInterrupt:
        return _fail(name, "interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    except (T2TError, OSError) as error:
        if values.debug:
            traceback.print_exc()
        return _fail(name, str(error), EXIT_ERROR)
    return 0


def _fail(name: str, message: str, status: int) -> int:
    sys.stdout.flush()
    print(f"{name}: error: {message}", file=sys.stderr)
    return status
