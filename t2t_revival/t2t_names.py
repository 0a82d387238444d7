"""Names of tensor2tensor that have another name in this project, or none, and the answers to them.

The answers are the tables of from_tensor2tensor.md, a page of the documentation. from_marian.md has those to
options of Marian.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import NamedTuple

from t2t_revival.errors import did_you_mean

T2T, MARIAN = "from_tensor2tensor.md", "from_marian.md"  # pages
FATES = {T2T: "now", MARIAN: "Marian's, and here"}  # what stands before our name in an answer
THE_SAME = "the same"
TRAINER = "t2t-trainer"  # many of T2T's commands took its flags
SETTINGS = {"t2t-trainer": "--hparams", "t2t-decoder": "--decode_hparams"}  # flags of names without dashes
SETTING = re.compile(r"\w+(=.*)?")
HPARAM_PREFIX, HPARAM = "hp_", "hp_NAME VALUE"
LANGUAGES = re.compile(r"translate_([a-z]{2})([a-z]{2})_")
SUFFIXES = re.compile(r"(?P<packed>_packed(?:1k|256)?)?(?P<reversed>_rev)?$")


class Row(NamedTuple):
    """A row of a table of another program's names.

    Attributes:
        theirs: the other program's names; * stands for any characters.
        here: "the same", "gone", or names of this project, in Markdown.
        note: a remark, in Markdown.
    """

    theirs: list[str]
    here: str
    note: str

    @property
    def ours(self) -> list[str]:
        """The names of this project."""
        return quoted(self.here)

    @property
    def plain_note(self) -> str:
        """The note without Markdown, for a terminal."""
        return self.note.replace("`", "")


def quoted(text: str) -> list[str]:
    """Returns what stands between backquotes."""
    return re.findall(r"`([^`]+)`", text)


@functools.cache
def sections(page: str = T2T) -> dict[str, str]:
    """Reads the texts of a page's sections, by their titles."""
    parts = Path(__file__).with_name(page).read_text(encoding="utf-8").split("\n## ")[1:]
    return {title: text for title, _, text in (part.partition("\n") for part in parts)}


@functools.cache
def table(title: str, page: str = T2T) -> list[Row]:
    """Reads the table of a section; it is empty where there is none."""
    lines = [line for line in sections(page).get(title, "").splitlines() if line.startswith("|")]
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:])
    return [Row(quoted(theirs), here, note) for theirs, here, note in cells]


def find(name: str, rows: Iterable[Row]) -> Row | None:
    """Finds the row of exactly this name, or else the first of a matching pattern."""
    matching = [row for row in rows if any(fnmatchcase(name, pattern) for pattern in row.theirs)]
    return next((row for row in matching if name in row.theirs), matching[0] if matching else None)


def problem_here(name: str) -> str | None:
    """Returns our name of tensor2tensor's problem: translate_ende for translate_ende_wmt32k_packed."""
    row, suffixes = _problem(name)
    return f"{row.ours[0]}{suffixes['reversed'] or ''}" if row and row.ours else None


def registered_name(name: str, known: Collection[str]) -> str:
    """Returns the known name of a problem for its own or tensor2tensor's; another name unchanged."""
    return name if name in known else problem_here(name) or name


def is_problem(theirs: str, ours: str) -> bool:
    """Checks for the same problem: tensor2tensor's translate_encs_wmt32k_rev is translate_encs_rev."""
    row, suffixes = _problem(theirs)
    if row is None or row.ours:
        return row is not None and problem_here(theirs) == ours
    same_direction = bool(suffixes["reversed"]) == ours.endswith("_rev")
    return same_direction and theirs.startswith(f"{ours.removesuffix('_rev')}_")


def explain_problem(name: str) -> str | None:
    """Explains the name of a problem of tensor2tensor, or why the problem is gone; `None` for other names."""
    row, suffixes = _problem(name)
    if row is None:
        return None
    if not row.ours:
        return f"{name} is tensor2tensor's and {_why_gone(name, row)}"
    packed = find(suffixes["packed"], table("Problems")) if suffixes["packed"] else None
    flags = " ".join([f"--problem={problem_here(name)}", *row.ours[1:], *(packed.ours if packed else ())])
    notes = [f"{name} is tensor2tensor's; here it is {flags}", row.plain_note]
    return "; ".join(filter(None, notes))


def explain_hparams(name: str) -> str | None:
    """Explains a set that only tensor2tensor's Transformer for text has; `None` for other names."""
    row = find(name, table("Hparams sets"))
    if row is None:
        return None
    fate = f"; the nearest here is --hparams_set={row.ours[0]}" if row.ours else " and is gone"
    return ": ".join(filter(None, [f"{name} is tensor2tensor's{fate}", row.plain_note]))


def explain_flags(command: str, unknown: Iterable[str], known: Collection[str]) -> list[str]:
    """Explains flags that a command does not have, T2T's and Marian's first; those of one fate share a line.

    Names have no dashes before them. A near one of the `known` is suggested for a flag that neither had.
    """
    fates: dict[str, list[str]] = {}
    never_known = []
    for name in dict.fromkeys(unknown):
        if fate := _fate(command, name, known) or _fate(command, name, known, MARIAN):
            fates.setdefault(fate, []).append(f"--{name}")
        else:
            never_known.append(did_you_mean(name, known, "flag"))
    explained = [f"{', '.join(names)} {'are' if names[1:] else 'is'} {fate}" for fate, names in fates.items()]
    return explained + never_known


def explain_value(command: str, fault: str, known: Collection[str]) -> str:
    """Adds to absl's fault of a flag's value what Marian's flag of this name is here, if it had one."""
    flag = re.match("flag --([^=]+)=", fault)
    fate = _fate(command, flag[1], known, MARIAN) if flag else None
    return f"{fault}; --{flag[1]} is also {fate}" if flag and fate else fault


def takes_several(flag: str) -> bool:
    """Returns whether a flag may be one of Marian's, which take several values, separated by spaces."""
    return any(
        find(f"--{flag}", table(title, MARIAN)) and not find(f"--{flag}", table(title)) for title in SETTINGS
    )


def _problem(name: str) -> tuple[Row | None, re.Match[str]]:
    """Finds the row of a problem without its suffixes, and these."""
    suffixes = SUFFIXES.search(name)
    assert suffixes is not None  # it matches the end of any text
    named = [row for row in table("Problems") if not row.theirs[0].startswith("*")]  # others: of suffixes
    return find(name[: suffixes.start()], named), suffixes


def _why_gone(name: str, row: Row) -> str:
    if row.note.startswith("has no corpus") and (languages := LANGUAGES.match(name)):
        return row.plain_note.replace("translate_en_cs", "translate_{}_{}".format(*languages.groups()))
    return row.plain_note if row.note.startswith("out of scope") else f"is gone: {row.plain_note}"


def _fate(command: str, name: str, known: Collection[str], page: str = T2T) -> str | None:
    """Returns the fate of a flag of tensor2tensor or Marian; `None` if it had none of this name."""
    if name.startswith(HPARAM_PREFIX):
        name = HPARAM
    commands = [title for title in sections(page) if title.startswith("t2t-")]
    owners = dict.fromkeys([command, TRAINER, *commands])
    for plain, owner in product(dict.fromkeys([name, name.removeprefix("no")]), owners):
        row = find(f"--{plain}", table(owner, page))
        if row and row.here == THE_SAME:
            return f"a flag of {owner}, and does nothing in {command}"
        if row:
            here = f"{FATES[page]} {_here(row, f'--{plain}', owner, known)}" if row.ours else "gone"
            return f"{here}{f': {row.plain_note}' if row.note else ''}"
    return None


def _here(row: Row, name: str, owner: str, known: Collection[str]) -> str:
    """Returns our name for the one of a row; where it has as many of each, they are in the same order."""
    here = row.ours[row.theirs.index(name) if len(row.ours) == len(row.theirs) > 1 else 0]
    if SETTING.fullmatch(here):
        value = "" if "=" in here.rpartition(",")[2] else "=..."
        here = f"{SETTINGS[owner]}={here}{value}"
    flag = here.removeprefix("--").partition("=")[0]
    elsewhere = here.startswith("--") and flag not in known
    return f"{owner} {here}" if elsewhere else here
