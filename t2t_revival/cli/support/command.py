"""The frame of every command: command line, `--help`, one-line errors, exit codes."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import sys
import textwrap
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from absl import flags as absl

from t2t_revival import t2t_names
from t2t_revival.cli.support.flags import ABOUT, GROUP, About, Flags, declared
from t2t_revival.errors import T2TError
from t2t_revival.utils import native_log
from t2t_revival.utils.files import NO_HOME, has_home, url_fault
from t2t_revival.utils.signals import INTERRUPTIONS, terminable
from t2t_revival.utils.streams import Tolerant, is_broken_pipe, reserve_descriptors, tolerant

EXIT_ERROR, EXIT_USAGE = 1, 2
EXIT_SIGNAL = 128  # and the number of the signal
F = TypeVar("F", bound=Flags)
RUN = "output_dir"  # whose default folder is in the user's home
HELP_WIDTH = 100  # columns
PATH_FLAGS = ("_dir", "_file", "checkpoint", "saved_model")  # how the names of flags that are paths end
NUMBER = re.compile(r"-\.?\d")  # a negative number is a value, not a flag


class Parser(Generic[F]):
    """Parses a command line as T2T did, by absl's flags, but reports all its faults.

    Attributes:
        table: absl's flags by all their names.
    """

    def __init__(self, kind: type[F]) -> None:
        self.table = absl.FlagValues()
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
            default = str(flag.default).lower() if flag.boolean else flag.default
            shown = "" if default in (None, "") else f" (default: {default})"
            heads[f"  --{'[no]' if flag.boolean else ''}{flag.name}"] = flag.help + shown
        column = max(map(len, heads)) + 2
        return "\n".join(
            textwrap.fill(
                text,
                HELP_WIDTH,
                initial_indent=head.ljust(column),
                subsequent_indent=" " * column,
                break_on_hyphens=False,
            )
            for head, text in heads.items()
        )

    def parse(self, command: str, words: list[str]) -> list[str]:
        """Reads the words behind a command's name; returns a line for each fault.

        Faults are unknown flags, wrong values and unexpected arguments.
        """
        self.table.mark_as_parsed()
        faults = self._repetitions(words)
        try:
            words = self.table.read_flags_from_files(words, force_gnu=False)
        except absl.Error as error:
            return [str(error)]
        unknown: list[str] = []
        for name, item in self._items(words):
            if not name:
                faults.append(f"unexpected argument {item[0]!r}")
            elif self._flag(name) is not None:
                try:
                    self.table([command, *item])
                except (absl.Error, ValueError) as error:
                    faults.append(str(error))
            else:
                unknown.append(name)
        for name in filter(lambda name: name.endswith(PATH_FLAGS), self.table):
            value = self.table[name].value
            paths = value if isinstance(value, list) else str(value).split(",")
            faults += [f"--{name}={fault}" for fault in map(url_fault, paths) if fault][:1]
        known = [flag.name for flag in self.definitions]
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

    def _repetitions(self, words: list[str]) -> list[str]:
        """Returns a line for each flag that is given several times but has one value.

        A value of a file of flags (--flagfile) may be replaced by one on the command line.
        """
        flags = (self._flag(name) for name, _ in self._items(words) if name)
        counts = Counter(flag.name for flag in flags if flag is not None)
        return [
            f"--{name} is given {'twice' if count == 2 else f'{count} times'}: give it once"
            + (", its values separated by commas" * isinstance(self.table[name].parser, absl.ListParser))
            for name, count in counts.items()
            if count > 1 and not isinstance(self.table[name], absl.MultiFlag)
        ]

    def _items(self, arguments: list[str]) -> Iterator[tuple[str, list[str]]]:
        """Yields name and words of each flag, its value among them; other arguments have no name."""
        words = list(arguments)
        while words:
            word = words.pop(0)
            name = _name(word)
            flag = self._flag(name)
            takes_value = bool(name) and "=" not in word and not (flag is not None and flag.boolean)
            is_value = words and (flag is not None or not words[0].startswith("-") or NUMBER.match(words[0]))
            if takes_value and is_value:
                yield name, [word, words.pop(0)]
            elif word == "--":
                yield from (("", [rest]) for rest in words)
                return
            else:
                yield name, [word]

    def _flag(self, name: str) -> absl.Flag | None:
        if name in self.table:
            return self.table[name]
        plain = name.removeprefix("no")
        is_negated = plain != name and plain in self.table and self.table[plain].boolean
        return self.table[plain] if is_negated else None


class _DecimalParser(absl.IntegerParser):
    """Parses an integer that is written in decimal digits; absl's also reads 0x10 and 0o20."""

    def convert(self, argument: int | str) -> int:
        if isinstance(argument, str) and not re.fullmatch("[+-]?[0-9]+", argument):
            raise ValueError(f"{argument!r} is not an integer in decimal digits")
        return super().convert(argument)


def _define(name: str, kind: Any, default: Any, about: About, table: absl.FlagValues) -> None:
    """Defines a flag of absl for values of a type."""
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    is_list = get_origin(kind) is tuple
    choices = about.choices or (get_args(kind) if get_origin(kind) is Literal else ())
    makers: dict[Any, Callable[..., object]] = {
        bool: absl.DEFINE_bool,
        int: partial(
            absl.DEFINE, _DecimalParser(about.least, about.most), serializer=absl.ArgumentSerializer()
        ),
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
    dashes = 2 if word.startswith("--") else 1
    return word[dashes:].partition("=")[0] if word.startswith("-") else ""


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
        """Returns the flags of a command line, the program's name first; raises T2TError if it has faults."""
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
            if isinstance(error, RuntimeError) and "home directory" in str(error):  # pathlib's, of ~name/data
                return _fail(name, _home_fault(parser), EXIT_ERROR)
            raise
        return status or 0


def _home_fault(parser: Parser) -> str:
    """Describes the fault of a path that begins with ~, which may be the default of a flag."""
    if has_home():
        return "a path begins with ~ and the name of no user: write all of it"
    known = [parser.table[name] for name in sorted(parser.table)]
    own = [
        flag.name for flag in known if not flag.present and (flag.name == RUN or str(flag.default)[:1] == "~")
    ]
    names = " and ".join(f"--{name}" for name in dict.fromkeys(own))
    return f"{NO_HOME}, or give {names}" if names else NO_HOME


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
