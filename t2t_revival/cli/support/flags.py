"""Flags as fields of frozen dataclasses, and what of them goes together.

A command has a class with its flags, which inherits those that several commands share. Settings that are
handed on whole, such as `RunConfig`, are one field, see `group`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, TypeVar, get_type_hints

from t2t_revival.cli.support.text_files import STANDARD_STREAM, check_outputs
from t2t_revival.errors import T2TError

T = TypeVar("T")
Names = Sequence[tuple[str, ...]]  # of flags that belong together
ABOUT, GROUP = "about", "group"  # keys of a field's metadata
READ, WRITTEN = "read", "written"
ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


@dataclass(frozen=True)
class About:
    """All that is known of a flag besides its name, type and default.

    Attributes:
        help: the text of `--help`.
        least: smallest valid number; `None` here and below sets no bound.
        most: largest valid number.
        choices: all values of a text; empty allows any.
        also: another name of the flag, which `--help` does not show.
        repeated: whether each of several values may have a flag of its own.
        missing: what an error says behind the name of the flag if it has no value; "" if it may have none.
        file: READ or WRITTEN if values are files of lines, or - for a standard stream; see `Flags.check`.
    """

    help: str
    least: float | None = 0
    most: float | None = None
    choices: tuple[str, ...] = ()
    also: str = ""
    repeated: bool = False
    missing: str = ""
    file: str = ""


@dataclass(frozen=True)
class Group:
    """Flags that are the fields of a dataclass: these fields by the flags' names, and bounds of numbers."""

    names: Mapping[str, str]
    bounds: Mapping[str, tuple[float | None, float | None]]


def flag(default: T, text: str, **details: Any) -> T:
    """Returns a field that is a flag; its help is `text`, and `details` are those of `About`."""
    return dataclasses.field(default=default, metadata={ABOUT: About(text, **details)})


def group(
    default: T,
    names: Mapping[str, str],
    bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
) -> T:
    """Returns a field that is a dataclass, whose own fields have the flags of these names.

    The fields have descriptions, which are the flags' help. Numbers without bounds are not negative.
    """
    return dataclasses.field(default=default, metadata={GROUP: Group(names, bounds or {})})


@dataclass(frozen=True)
class Flags:
    """The flags that every command has; those of a command are a subclass.

    Attributes:
        given: the flags that the command line gives, with their values. An empty text or list where that is
            the default is as good as not given.
        exclusive: pairs of flags of which one at most may be given, or may be with a value, as "format=text";
            here and below, besides those of the classes above.
        needs: flags, each with those behind it of which it needs one to have an effect.
        aliases: other names, each with the flag's own.
    """

    exclusive: ClassVar[Names] = ()
    needs: ClassVar[Names] = ()
    aliases: ClassVar[Names] = ()
    debug: bool = flag(False, "Show the whole traceback of an error.")
    help: bool = flag(False, "Show this help.", also="h")
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Returns whether a flag is given, and not switched off; of "NAME=VALUE", given with that value."""
        name, _, value = name.partition("=")
        given = self.given.get(name, False)
        return given is not False and given != "" and value in ("", str(given))

    def files(self, kind: str) -> dict[str, str]:
        """The files that flags name which are READ, or WRITTEN, each under the flag as it was written."""
        fields = ((field, field.metadata.get(ABOUT)) for field in dataclasses.fields(self))
        values = {
            field.name: getattr(self, field.name) for field, about in fields if about and about.file == kind
        }
        listed = {name: value if isinstance(value, tuple) else (value,) for name, value in values.items()}
        return {f"--{name}={file}": file for name, files in listed.items() for file in files if file}

    def answer(self) -> bool:
        """Prints what a flag asks for in place of the command's work; returns whether one does."""
        return False

    def check(self) -> None:
        """Checks that the flags go together.

        Raises:
            T2TError: two exclude each other, or another one is missing; two read the standard input, or one
                would overwrite what another one reads.
        """
        kinds = [kind for kind in type(self).__mro__ if issubclass(kind, Flags)]
        for name, other in chain.from_iterable(vars(kind).get("exclusive", ()) for kind in kinds):
            if self.has(name) and self.has(other):
                raise T2TError(f"--{name} and --{other} cannot be combined: give one of them")
        for name, *others in chain.from_iterable(vars(kind).get("needs", ()) for kind in kinds):
            if self.has(name) and not any(map(self.has, others)):
                raise T2TError(f"--{name} needs {' or '.join(f'--{other}' for other in others)}")
        for field in dataclasses.fields(self):
            about, value = field.metadata.get(ABOUT), getattr(self, field.name)
            if about and about.missing and not (any(value) if isinstance(value, tuple) else value):
                raise T2TError(f"--{field.name}{about.missing}")
        read = self.files(READ)
        on_stdin = [name for name, file in read.items() if file == STANDARD_STREAM]
        if len(on_stdin) > 1:
            raise T2TError(f"{' and '.join(on_stdin)}: only one of them can be the standard input")
        check_outputs(read, self.files(WRITTEN) or {"": STANDARD_STREAM})


def declared(kind: type[Flags]) -> Iterator[tuple[str, Any, Any, About]]:
    """Yields name, type and default of each flag of a command, and what is known of it."""
    types = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if ABOUT in field.metadata:
            yield field.name, types[field.name], field.default, field.metadata[ABOUT]
        elif GROUP in field.metadata:
            members, owner = field.metadata[GROUP], type(field.default)
            own_types, helps = get_type_hints(owner), descriptions(owner)
            for name, own in members.names.items():
                about = About(helps[own], *members.bounds.get(name, (0, None)))
                yield name, own_types[own], getattr(field.default, own), about


def descriptions(owner: type) -> dict[str, str]:
    """Reads the descriptions of a dataclass's fields: the Attributes of its docstring."""
    texts: dict[str, str] = {}
    for kind in filter(dataclasses.is_dataclass, reversed(owner.__mro__)):
        attributes = inspect.cleandoc(kind.__doc__ or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
        texts |= dict(ATTRIBUTE.findall(attributes))
    plain = {name: " ".join(text.replace("`", "").split()).removesuffix(".") for name, text in texts.items()}
    return {name: f"{text[:1].upper()}{text[1:]}." for name, text in plain.items()}
