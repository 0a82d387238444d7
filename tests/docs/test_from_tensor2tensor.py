"""docs/from_tensor2tensor.md names all that T2T had, and nothing of ours that does not exist.

A row's first cell names T2T's side; its second says "the same", "gone", or names ours. T2T's names are those
of `reference/names.json` and `hparams.json`; ours are looked up in the code.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.t2t_tables import updated
from t2t_revival import DecodeHParams, HParams, registry
from t2t_revival.cli.support import t2t_flags
from t2t_revival.cli.support.parser import Parser

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "tests" / "reference"
TEXT = (ROOT / "docs" / "from_tensor2tensor.md").read_text(encoding="utf-8")
COMMANDS = re.findall(
    r'^    "(\w+)",$', (ROOT / "setup.py").read_text(encoding="utf-8").split("setup(")[0], re.M
)


class Row(NamedTuple):
    theirs: list[str]
    here: str
    note: str

    @property
    def ours(self) -> list[str]:
        return spans(self.here)


def spans(text: str) -> list[str]:
    """Text between backquotes."""
    return re.findall(r"`([^`]+)`", text)


def read() -> tuple[dict[str, list[Row]], dict[str, str]]:
    """The rows of each section's table, and its text besides."""
    tables: dict[str, list[Row]] = {}
    prose: dict[str, str] = {}
    for section in TEXT.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        lines = [line for line in body.splitlines() if line.startswith("|")][2:]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        tables[title] = [Row(spans(theirs), here, note) for theirs, here, note in cells]
        prose[title] = "\n".join(line for line in body.splitlines() if not line.startswith("|"))
    return tables, prose


TABLES, PROSE = read()
NAMES = json.loads((REFERENCE / "names.json").read_text())
HPARAMS = json.loads((REFERENCE / "hparams.json").read_text())["transformer_base"]


def flags_of(command: str) -> set[str]:
    module = importlib.import_module(f"t2t_revival.cli.{command.removeprefix('t2t-').replace('-', '_')}")
    return {f"--{name}" for name in Parser(module.main.flags).table}


FLAGS = {f"t2t-{name.replace('_', '-')}": flags_of(name) for name in COMMANDS}
FLAGS["t2t-make-tf-configs"].remove("--ps")  # which is there to be refused
FLAG_TABLES = [title for title in TABLES if title in FLAGS]
FIELDS = {
    "decode_hparams": {field.name for field in dataclasses.fields(DecodeHParams)},
    "Problems": set(registry.list_problems()),
    "Hparams sets": set(registry.list_hparams()),
    "Hparams": {field.name for field in dataclasses.fields(HParams)},
}
THEIRS = {
    "decode_hparams": NAMES["decode_hparams"].split(),
    "Problems": NAMES["problems"].split(),
    "Hparams sets": NAMES["hparams_sets"].split(),
    "Hparams": list(HPARAMS),
}


def test_each_command_that_t2t_had_for_text_has_its_table() -> None:
    missing = {title for title in NAMES["flags"] if title not in FLAGS} - {
        "avg_checkpoints",
        "t2t-insights-server",
    }
    assert not missing
    assert set(FLAG_TABLES) == set(NAMES["flags"]) & set(FLAGS) | {"t2t-eval"}
    named = {name for row in TABLES["Commands"] for name in [*row.theirs, *row.ours]}
    assert set(FLAGS) <= named


@pytest.mark.parametrize("title", FLAG_TABLES)
def test_flags(title: str) -> None:
    theirs = [flag for row in TABLES[title] for flag in row.theirs]
    assert len(theirs) == len(set(theirs))
    known = {f"--{name}" for name in NAMES["flags"].get(title, "").split()}
    if title == "t2t-avg-all":
        known |= {f"--{name}" for name in NAMES["flags"]["avg_checkpoints"].split()}
    assert known <= set(theirs)
    for row in TABLES[title]:
        for flag in row.theirs:
            assert (flag.split()[0] in FLAGS[title]) == (row.here == "the same"), flag


def test_what_is_gone_or_renamed_is_what_the_commands_answer() -> None:
    assert updated(TEXT) == TEXT, "run python docs/t2t_tables.py"


@pytest.mark.parametrize("title", FLAG_TABLES)
def test_the_commands_know_which_of_t2ts_flags_are_the_same(title: str) -> None:
    same = {flag for row in TABLES[title] for flag in row.theirs if row.here == "the same"}
    assert same == {f"--{name}" for name in t2t_flags.SAME[title].split()}


def row_of(name: str, rows: list[Row]) -> Row | None:
    """The row that names it, or else the first with a pattern for it."""
    exact = (row for row in rows if name in row.theirs)
    like = (row for row in rows if any(fnmatchcase(name, pattern) for pattern in row.theirs))
    return next(exact, None) or next(like, None)


@pytest.mark.parametrize("title", FIELDS)
def test_names(title: str) -> None:
    known = FIELDS[title]
    for name in THEIRS[title]:
        row = row_of(name, TABLES[title])
        assert row is not None, name
        assert (name in known) == (row.here == "the same"), name
    for row in TABLES[title]:
        for name in row.theirs if row.here == "the same" else []:
            assert name in known, name
        for name in row.ours:
            assert not name.isidentifier() or name in known, name


IN_EVERY_COMMAND = {"--debug", "--h", "--help", "--registry_help"}


@pytest.mark.parametrize("title", [*FLAG_TABLES, "decode_hparams", "Hparams"])
def test_what_is_here_only_is_named(title: str) -> None:
    rows = [span for row in TABLES[title] for span in [*row.theirs, *row.ours, *spans(row.note)]]
    named = {re.split(r"[= ]", span)[0] for span in [*rows, *spans(PROSE[title])]}
    ours = FLAGS[title] if title in FLAGS else FIELDS[title]
    assert sorted(ours - named - IN_EVERY_COMMAND) == []


def check_command(text: str) -> None:
    """A command line of ours: there is such a command, and it has these flags."""
    command, *words = shlex.split(text)
    assert command in FLAGS, text
    for word in words:
        flag = word.partition("=")[0]
        assert not flag.startswith("--") or flag in FLAGS[command], text


def check_span(span: str, title: str) -> None:
    """Each name that is ours by its shape exists."""
    if span.startswith("t2t-"):
        check_command(span)
    elif span.startswith("--"):
        flag = re.split(r"[= ]", span)[0]
        assert any(flag in flags for name, flags in FLAGS.items() if title not in FLAGS or name == title), (
            span
        )
    elif span.startswith("t2t_revival."):
        resolve(span)


def resolve(name: str) -> object:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


@pytest.mark.parametrize("title", TABLES)
def test_what_is_named_on_our_side_exists(title: str) -> None:
    ours = [span for row in TABLES[title] for span in spans(row.here + row.note)]
    for span in [*ours, *spans(PROSE[title])]:
        check_span(span, title)
