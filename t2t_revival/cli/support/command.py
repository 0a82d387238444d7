"""The frame of every command: command line, `--help`, one-line errors, exit codes."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from absl import flags as absl

from t2t_revival import t2t_names
from t2t_revival.cli.support.flags import ABOUT, GROUP, About, Flags, declared
from t2t_revival.cli.support.text_files import STDOUT
from t2t_revival.errors import T2TError
from t2t_revival.utils import native_log
from t2t_revival.utils.files import NO_HOME, has_home, url_fault
from t2t_revival.utils.signals import INTERRUPTIONS, terminable
from t2t_revival.utils.streams import Tolerant, tolerant

EXIT_ERROR, EXIT_USAGE = 1, 2
EXIT_SIGNAL = 128  # and the number of the signal
F = TypeVar("F", bound=Flags)
HELP_WIDTH = 100  # columns
PATH_FLAGS = ("_dir", "_file", "checkpoint", "saved_model")  # how the names of flags that are paths end
HELP = frozenset({"--help", "-help", "--h", "-h"})
NUMBER = re.compile(r"-\.?\d")  # a negative number is a value, not a flag


def beside(head: str, text: str, column: int) -> list[str]:
    """Returns the lines of a text that begins at a column, the first one behind `head`."""
    return textwrap.wrap(
        text,
        HELP_WIDTH,
        initial_indent=head.ljust(column),
        subsequent_indent=" " * column,
        break_on_hyphens=False,
        break_long_words=False,
    )


class Parser(Generic[F]):
    """Parses a command line as T2T did, by absl's flags, and explains flags that the command does not have.

    Attributes:
        table: absl's flags by all their names.
    """

    def __init__(self, kind: type[F]) -> None:
        self.table = absl.FlagValues()
        self.table.set_gnu_getopt(True)  # what stands behind an argument is parsed too
        self._kind = kind
        for name, type_of_values, default, about in declared(kind):
            _define(name, type_of_values, default, about, self.table)
            if about.also:
                self.table[about.also] = self.table[name]
        for alias, name in kind.aliases:
            absl.DEFINE_alias(alias, name, flag_values=self.table)

    @property
    def definitions(self) -> list[absl.Flag]:
        """The flags that `--help` shows, by name."""
        return [self.table[name] for name in sorted(self.table) if name == self.table[name].name]

    def describe(self) -> str:
        """Describes the flags, one paragraph each, in two columns."""
        heads = {}
        for flag in self.definitions:
            default = str(flag.default).lower() if isinstance(flag.default, bool) else flag.default
            shown = "" if default in (None, "") else f" (default: {default})"
            heads[f"  --{'[no]' if flag.boolean else ''}{flag.name}"] = flag.help + shown
        column = max(map(len, heads)) + 2
        return "\n".join(line for head, text in heads.items() for line in beside(head, text, column))

    def parse(self, command: str, words: list[str]) -> list[str]:
        """Reads the words behind a command's name; returns a line for each fault.

        Faults are the first wrong value, or else unknown flags, repeated flags and unexpected arguments.
        """
        known = [flag.name for flag in self.definitions]
        try:
            left = self.table([command, *words], known_only=True)[1:]
        except (absl.Error, ValueError) as error:
            self.table.mark_as_parsed()
            return [t2t_names.explain_value(command, str(error), known)]
        unknown, faults = self._sort(left)
        if not any(_name(word) == "flagfile" for word in words):  # whose values others may replace
            faults += [
                _repetition(flag)
                for flag in self.definitions
                if flag.present > 1 and not isinstance(flag, absl.MultiFlag)
            ]
        for name in filter(lambda name: name.endswith(PATH_FLAGS), self.table):
            value = self.table[name].value
            paths = value if isinstance(value, list) else str(value).split(",")
            faults += [f"--{name}={fault}" for fault in map(url_fault, paths) if fault][:1]
        explained = t2t_names.explain_flags(command, unknown, known)
        if unknown and {"data_source", "problem"} <= set(self.table):  # a command that generates data
            explanation = t2t_names.explain_problem(self.table["problem"].value or "")
            explained += [f"--problem={explanation}"] if explanation else []
        return explained + faults

    def flags(self) -> F:
        """Returns the flags of the words that were parsed."""
        settings: dict[str, Any] = {}
        for field in dataclasses.fields(self._kind):
            if ABOUT in field.metadata:
                settings[field.name] = self._value(field.name)
            elif GROUP in field.metadata:
                names: Mapping[str, str] = field.metadata[GROUP].names
                values = {own: self._value(name) for name, own in names.items()}
                default: Any = field.default
                settings[field.name] = dataclasses.replace(default, **values)
        given = {
            flag.name: self._value(flag.name)
            for flag in self.definitions
            if flag.present and not (flag.value in ("", []) and flag.value == flag.default)
        }
        return self._kind(**settings, given=given)

    def _value(self, name: str) -> Any:
        value = self.table[name].value
        return tuple(value) if isinstance(value, list) else value

    def _sort(self, left: list[str]) -> tuple[list[str], list[str]]:
        """Returns unknown flags, and a line for each unexpected argument, of the words that absl has left.

        An argument behind an unknown flag is its value, and so are all behind one of Marian's.
        """
        unknown, faults, flag = [], [], ""
        for word in left:
            name = "" if NUMBER.match(word) else _name(word)
            if name and name not in self.table:
                unknown.append(name)
            elif word != "--" and not flag:
                faults.append(f"unexpected argument {word!r}")
            if name or not t2t_names.takes_several(flag):
                flag = "" if "=" in word else name
        return unknown, faults


def _repetition(flag: absl.Flag) -> str:
    times = "twice" if flag.present == 2 else f"{flag.present} times"
    commas = ", its values separated by commas" if isinstance(flag.parser, absl.ListParser) else ""
    return f"--{flag.name} is given {times}: give it once{commas}"


def _define(name: str, kind: Any, default: Any, about: About, table: absl.FlagValues) -> None:
    """Defines a flag of absl for values of a type."""
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    is_list = get_origin(kind) is tuple
    choices = about.choices or (get_args(kind) if get_origin(kind) is Literal else ())
    makers: dict[Any, Callable[..., object]] = {
        bool: absl.DEFINE_bool,
        int: partial(absl.DEFINE_integer, lower_bound=about.least, upper_bound=about.most),
        float: partial(absl.DEFINE_float, lower_bound=about.least, upper_bound=about.most),
        str: absl.DEFINE_string,
        Path: absl.DEFINE_string,
    }
    if choices:
        absl.DEFINE_enum(name, default, list(choices), about.help, flag_values=table)
    elif is_list:
        define = absl.DEFINE_multi_string if about.repeated else absl.DEFINE_list
        define(name, list(default), about.help, flag_values=table)
    else:
        makers[kind](name=name, default=default, help=about.help, flag_values=table)


def _name(word: str) -> str:
    """Returns the name of the flag in a word; empty where the word is not a flag."""
    return re.sub("^--?", "", word).partition("=")[0] if word.startswith("-") else ""


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
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # prints what the terminal's encoding lacks as \\xe4
                stream.reconfigure(errors="backslashreplace")
        os.environ.setdefault(native_log.LEVEL, native_log.DEFAULT_LEVEL)
        with tolerant() as out:
            try:
                with terminable():
                    return self._run(name, argv[1:], out)
            except KeyboardInterrupt as stop:
                number = next(number for number, kind in INTERRUPTIONS.items() if kind is type(stop))
                return _fail(name, str(stop) or "interrupted", EXIT_SIGNAL + number)
            except BrokenPipeError as error:
                if error.filename in (None, STDOUT):  # as by `| head`
                    return EXIT_ERROR
                return _fail(name, f"cannot write {error.filename}: nobody reads it", EXIT_ERROR)

    def parse(self, argv: list[str]) -> F:
        """Returns the flags of a command line, the program's name first; raises T2TError if it has faults."""
        parser = Parser(self.flags)
        if faults := parser.parse(argv[0], argv[1:]):
            raise T2TError("; ".join(faults))
        return parser.flags()

    def _run(self, name: str, words: list[str], out: Tolerant) -> int:
        parser = Parser(self.flags)
        faults = parser.parse(name, words)
        wants_help, debug = not HELP.isdisjoint(words), parser.table["debug"].value
        if faults and not wants_help:
            return _fail_usage(name, faults)
        status = None
        try:
            if wants_help:
                print(f"{self.usage}\n\nFlags:\n{parser.describe()}")
            else:
                flags = parser.flags()
                if flags.debug:
                    os.environ[native_log.LEVEL] = "0"
                if not flags.answer():
                    flags.check()
                    status = self.run(flags)
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
            if isinstance(error, RuntimeError) and "home directory" in str(error):  # pathlib's, of ~/data
                no_user = "a path begins with ~ and the name of no user: write all of it"
                fault = no_user if has_home() else f"{NO_HOME}, or give the paths of folders"
                return _fail(name, fault, EXIT_ERROR)
            raise
        return status or 0


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
