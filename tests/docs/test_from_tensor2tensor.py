"""t2t_revival/from_tensor2tensor.md names all that T2T had, and nothing of ours that does not exist.

Nor does from_marian.md, of Marian's options.

A row's first cell names T2T's side; its second says "the same", "gone", or names ours. T2T's names are those
of `reference/names.json` and `hparams.json`; ours are looked up in the code.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import shlex
from pathlib import Path

import pytest

from t2t_revival import DecodeHParams, HParams, registry, t2t_names
from t2t_revival.cli.support.command import Parser
from t2t_revival.t2t_names import MARIAN, SETTING, THE_SAME, quoted

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "tests" / "reference"
COMMANDS = re.findall(
    r'^    "(\w+)",$', (ROOT / "setup.py").read_text(encoding="utf-8").split("setup(")[0], re.M
)


TABLES = {title: rows for title in t2t_names.sections() if (rows := t2t_names.table(title))}
PROSE = {title: re.sub(r"^\|.*", "", text, flags=re.M) for title, text in t2t_names.sections().items()}
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
            assert (flag.split()[0] in FLAGS[title]) == (row.here == THE_SAME), flag


@pytest.mark.parametrize("title", FIELDS)
def test_names(title: str) -> None:
    known = FIELDS[title]
    for name in THEIRS[title]:
        row = t2t_names.find(name, TABLES[title])
        assert row is not None, name
        assert (name in known) == (row.here == THE_SAME), name
    for row in TABLES[title]:
        for name in row.theirs if row.here == THE_SAME else []:
            assert name in known, name
        for name in row.ours:
            assert not name.isidentifier() or name in known, name


IN_EVERY_COMMAND = {"--debug", "--h", "--help", "--registry_help"}


@pytest.mark.parametrize("title", [*FLAG_TABLES, "decode_hparams", "Hparams"])
def test_what_is_here_only_is_named(title: str) -> None:
    rows = [span for row in TABLES[title] for span in [*row.theirs, *row.ours, *quoted(row.note)]]
    named = {re.split(r"[= ]", span)[0] for span in [*rows, *quoted(PROSE[title])]}
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
    ours = [span for row in TABLES[title] for span in quoted(row.here + row.note)]
    for span in [*ours, *quoted(PROSE[title])]:
        check_span(span, title)


@pytest.mark.parametrize(
    ("command", "fields"), [("t2t-trainer", "Hparams"), ("t2t-decoder", "decode_hparams")]
)
def test_options_of_marian(command: str, fields: str) -> None:
    rows = t2t_names.table(command, MARIAN)
    theirs = [option.removeprefix("--") for row in rows for option in row.theirs]
    assert len(theirs) == len(set(theirs))
    assert not set(theirs) - set(NAMES["marian"][command].split())
    for span in [span for row in rows for span in quoted(row.here + row.note)]:
        check_span(span, command)
        if SETTING.fullmatch(span):
            assert {part.partition("=")[0] for part in span.split(",")} <= FIELDS[fields], span


def test_prose_on_marian() -> None:
    for span in quoted(t2t_names.sections(MARIAN)["What differs on purpose"]):
        check_span(span, "")
