"""What all commands share: flags, one-line errors, exit codes."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable

from absl import flags

from t2t_revival import native_log, registry
from t2t_revival.cli import command_line
from t2t_revival.errors import T2TError, Terminated

HELP_WIDTH = 100  # columns
LEAST_PART = 1024  # tokens of a batch that are worth a stream of their own
MOST_TRAINING_STREAMS = 8  # each has a copy of the graph
EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143


def new_flags() -> flags.FlagValues:
    """The flags of one command, with the flags that every command has."""
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
    """Parses the command line, runs `command` and turns every failure into one line on stderr.

    Args:
        values: the command's flags (`new_flags`); what an earlier call set is forgotten.
        usage: what `--help` prints above the flags; help is given whatever else stands there.
        command: takes the parsed flags, does the work; may return an exit status.
        argv: the command line with the program's name first; `sys.argv` if not given.

    Returns:
        The exit status: 0; 1 after an error; 2 after a wrong command line; 130 after Ctrl-C;
        143 after SIGTERM, where a command keeps what it has done.
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


def load_tensorflow(values: flags.FlagValues) -> None:
    """Imports TensorFlow without what it prints at its start, unless `--debug` is given."""
    if values.debug:
        os.environ[native_log.LEVEL] = "0"
    with native_log.quiet():
        import tensorflow as tf

        tf.config.list_physical_devices()


def streams(most: int | None = None) -> int:
    """How many streams of work to run side by side, and the threads of each set in TensorFlow.

    One, but on CPUs as many as there are cores: operations of one thread each, side by side, use the cores
    better than operations that are spread over them one after the other. A second call must ask for the same.

    Args:
        most: more than these are of no use; cores are then shared out evenly.
    """
    import tensorflow as tf

    from t2t_revival.data.workers import cores

    if tf.config.list_physical_devices("GPU"):
        return 1
    there = cores()
    number = max(n for n in range(1, min(there, most or there) + 1) if there % n == 0)
    try:
        tf.config.threading.set_intra_op_parallelism_threads(there // number)
    except RuntimeError:  # TensorFlow was in use before, with threads of its own
        return 1
    return number


def single_stream() -> int:
    """As `streams`, for one short text at a time: its operations are too small to be shared out."""
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):  # TensorFlow was in use before
        if not tf.config.list_physical_devices("GPU"):
            tf.config.threading.set_intra_op_parallelism_threads(1)
            tf.config.threading.set_inter_op_parallelism_threads(1)
    return 1


def training_streams(batch_size: int) -> int:
    """`streams` for a training whose batches have `batch_size` tokens."""
    return streams(min(MOST_TRAINING_STREAMS, max(1, batch_size // LEAST_PART)))


def _print_all_characters() -> None:
    """Has characters that the terminal's encoding lacks printed as \\xe4 and the like, not as a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _names(values: flags.FlagValues) -> list[str]:
    return sorted(name for name in values if name == values[name].name)


def _describe(values: flags.FlagValues) -> str:
    """The flags, one paragraph each, in two columns."""
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
    """Prints what is wrong with a command line: one fault in one line, several in a list."""
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
