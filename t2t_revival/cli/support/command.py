"""The frame of every command: flags, command line, `--help`, one-line errors, exit codes."""

from __future__ import annotations

import io
import os
import re
import sys
import textwrap
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

from absl import flags

from t2t_revival import t2t_names
from t2t_revival.cli.support import registry_help
from t2t_revival.cli.support.registry_help import HELP_WIDTH
from t2t_revival.errors import HungUp, T2TError, Terminated
from t2t_revival.utils import native_log
from t2t_revival.utils.files import url_fault
from t2t_revival.utils.signals import terminable
from t2t_revival.utils.streams import Tolerant, is_broken_pipe, reserve_descriptors, tolerant

PATH_FLAGS = ("_dir", "_file", "checkpoint", "saved_model")  # how the names of flags that are paths end
NUMBER = re.compile(r"-\.?\d")  # a negative number is a value, not a flag
EXIT_ERROR, EXIT_USAGE, EXIT_HUNG_UP, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 129, 130, 143
EXIT_STATUS = {KeyboardInterrupt: EXIT_INTERRUPTED, Terminated: EXIT_TERMINATED, HungUp: EXIT_HUNG_UP}


def new_flags() -> flags.FlagValues:
    """Creates the flags of a command, with those that every command has."""
    values = flags.FlagValues()
    flags.DEFINE_bool("debug", False, "Show the whole traceback of an error.", flag_values=values)
    flags.DEFINE_bool("help", False, "Show this help.", short_name="h", flag_values=values)
    return values


def define(values: flags.FlagValues, default: object, /, **helps: str) -> None:
    """Defines flags of one default from their help texts.

    Flags have the default's type; `None` stands for strings. Integers must not be negative.
    """
    kinds = {bool: flags.DEFINE_bool, int: define_integer, list: flags.DEFINE_list}
    for name, text in helps.items():
        kinds.get(type(default), flags.DEFINE_string)(name, default, text, flag_values=values)


def define_integer(
    name: str,
    default: int | None,
    text: str,
    *,
    flag_values: flags.FlagValues,
    lower_bound: int | None = 0,
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


def run(
    values: flags.FlagValues,
    usage: str,
    command: Callable[[flags.FlagValues], int | None],
    argv: list[str] | None = None,
) -> int:
    """Parses the command line, runs `command` and prints every failure as one line on stderr.

    Args:
        values: the command's flags; values of an earlier call are reset.
        usage: printed by `--help` above the flags, whatever else is on the command line.
        command: called with the parsed flags; may return an exit status.
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
                return _run(values, usage, command, name, argv[1:], out)
        except KeyboardInterrupt as stop:
            return _fail(name, str(stop) or "interrupted", EXIT_STATUS[type(stop)])
        except BrokenPipeError as error:
            if is_broken_pipe(sys.stdout):
                return EXIT_ERROR
            return _fail(name, f"cannot write {error.filename or 'a pipe'}: nobody reads it", EXIT_ERROR)


def _run(
    values: flags.FlagValues,
    usage: str,
    command: Callable[[flags.FlagValues], int | None],
    name: str,
    arguments: list[str],
    out: Tolerant,
) -> int:
    faults = parse(values, name, arguments)
    wants_help = values["help"].value
    if faults and not wants_help:
        return _fail_usage(name, faults)
    status = None
    try:
        if wants_help:
            print(f"{usage.strip()}\n\nFlags:\n{_describe(values)}")
        elif "registry_help" in values and values.registry_help:
            registry_help.print_registry(values)
        else:
            status = command(values)
        out.flush()
        if out.fault and not status:
            raise T2TError(f"cannot write the standard output: {out.fault.strerror}")
    except BrokenPipeError:
        raise
    except (T2TError, OSError) as error:
        if values.debug:
            traceback.print_exc()
        usr_dir = values["t2t_usr_dir"].value if "t2t_usr_dir" in values else None
        return _fail(name, error.message(usr_dir) if isinstance(error, T2TError) else str(error), EXIT_ERROR)
    except Exception as error:
        if isinstance(error, RuntimeError) and "home directory" in str(error):  # pathlib's, of ~name/data
            return _fail(name, "a path begins with ~ and the name of no user: write all of it", EXIT_ERROR)
        raise
    return status or 0


def _print_all_characters() -> None:
    """Prints characters that the terminal's encoding lacks as \\xe4 and the like, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _names(values: flags.FlagValues) -> list[str]:
    """Names of the flags, sorted, without aliases and short names."""
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


def parse(values: flags.FlagValues, command: str, arguments: list[str]) -> list[str]:
    """Sets the flags from the words behind a command's name; returns a line for each fault.

    Faults are unknown flags, wrong values and unexpected arguments. Values of an earlier call are reset.
    """
    for flag in values:
        values[flag].unparse()
    values.mark_as_parsed()
    faults = _repetitions(values, arguments)
    try:
        arguments = values.read_flags_from_files(arguments, force_gnu=False)
    except flags.Error as error:
        return [str(error)]
    unknown: list[str] = []
    for name, words in _items(values, arguments):
        if not name:
            faults.append(f"unexpected argument {words[0]!r}")
        elif _flag(values, name) is not None:
            try:
                values([command, *words])
            except (flags.Error, ValueError) as error:
                faults.append(str(error))
        else:
            unknown.append(name)
    faults += [f"--{name}={fault}" for name in values if (fault := _path_fault(name, values[name].value))]
    return (
        t2t_names.explain_flags(command, unknown, _names(values))
        + _explain_problem(values) * bool(unknown)
        + faults
    )


def _repetitions(values: flags.FlagValues, words: list[str]) -> list[str]:
    """Returns a line for each flag that is given several times but has one value.

    A value of a file of flags (--flagfile) may be replaced by one on the command line.
    """
    found = (_flag(values, name) for name, _ in _items(values, words) if name)
    given = Counter(flag.name for flag in found if flag is not None)
    return [
        f"--{name} is given {'twice' if count == 2 else f'{count} times'}: give it once"
        + (", its values separated by commas" if isinstance(values[name].parser, flags.ListParser) else "")
        for name, count in given.items()
        if count > 1 and not isinstance(values[name], flags.MultiFlag)
    ]


def _path_fault(name: str, value: object) -> str | None:
    """Describes the fault of a flag that is a path, or a list of paths; `None` if there is none."""
    if not name.endswith(PATH_FLAGS):
        return None
    paths = value if isinstance(value, list) else str(value).split(",")
    return next((fault for path in paths if (fault := url_fault(path))), None)


def _items(values: flags.FlagValues, arguments: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yields name and words of each flag, its value among them; other arguments have no name."""
    words = list(arguments)
    while words:
        word = words.pop(0)
        name = _name(word)
        flag = _flag(values, name)
        takes_value = bool(name) and "=" not in word and not (flag is not None and flag.boolean)
        is_value = words and (flag is not None or not words[0].startswith("-") or NUMBER.match(words[0]))
        if takes_value and is_value:
            yield name, [word, words.pop(0)]
        elif word == "--":
            yield from (("", [rest]) for rest in words)
            return
        else:
            yield name, [word]


def _name(word: str) -> str:
    """Returns the name of the flag in a word; empty where the word is not a flag."""
    dashes = 2 if word.startswith("--") else 1
    return word[dashes:].partition("=")[0] if word.startswith("-") else ""


def _flag(values: flags.FlagValues, name: str) -> flags.Flag | None:
    if name in values:
        return values[name]
    plain = name.removeprefix("no")
    return values[plain] if plain != name and plain in values and values[plain].boolean else None


def _explain_problem(values: flags.FlagValues) -> list[str]:
    """Explains `--problem` with tensor2tensor's name, which commands that generate data do not accept."""
    makes_data = "data_source" in values and "problem" in values
    name = values["problem"].value if makes_data else None
    explanation = t2t_names.explain_problem(name) if name else None
    return [f"--problem={explanation}"] if explanation else []
