"""Every command refuses wrong flags and files in one line of error, and leaves nothing behind.

The files in refusals/ are its tables. `$ t2t-align --output_dir=out` begins the cases of a command; each of
the lines below it has more flags, which replace those of the command (`--FLAG=` leaves one out), and behind
`=>` what the error says: its parts, in order, between `...`. Behind `<<<` stands what the file `given` and
the standard input hold. `DISK=full` before the flags runs the command on a full disk; another trainer is at
work in the folder busy.
"""

from __future__ import annotations

import codecs
import dataclasses
import errno
import filecmp
import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from t2t_revival import registry
from t2t_revival.model_folder import LOCK_FILE, ModelFolder, Run
from tests.support.processes import run_command

TABLES = sorted((Path(__file__).parent / "refusals").glob("*.txt"))
ROW = re.compile("(.*?) ?(?:<<< (.*?) ?)?=> (.*)")
FILES = {
    "in.en": "the dog sees train1 houses\n\nthe dog\n",
    "in.de": "der Hund sieht\n\nder Hund\n",
    "nbest": "a\t-1\tb\t-2\n\t0.00\na\t-1\n",
    "gold": "0-0 1-1 2?2\n\n0-0\n",
    "short": "0-0\n",
    "long": "the\t" + "Hund " * 99 + "\n",
    "trees": "(S (NN a))\n(S (NN b) (NN c))\n(S (NN d))\n",
    "half.gz": "no gzip\n",
    "empty": "",
    "given.part": "",
    "given000": "",
}
TEXT = b"the dog\n" * 20
CORPORA = {  # train.en and train.de
    "incomplete": [TEXT],
    "blank": [b"", b""],
    "binary": [bytes(range(256)) * 3, TEXT],
    "unequal": [TEXT, TEXT[:-8]],
    "latin-1": [TEXT, "der Hünd\n".encode("latin-1") * 20],
}


class Case(NamedTuple):
    """A row of a table."""

    words: list[str]
    given: bytes
    parts: list[str]
    disk_is_full: bool


def cases() -> Iterator[Case]:
    for line in (line for table in TABLES for line in table.read_text(encoding="utf-8").splitlines()):
        if line.startswith("$ "):
            usual = line[2:].split()
        elif line:
            flags, given, said = ROW.fullmatch(line).groups("")
            own = shlex.split(flags.removeprefix("DISK=full"))
            replaced = {word.partition("=")[0] for word in own}
            words = [word for word in usual if word.partition("=")[0] not in replaced]
            yield Case(
                [*words, *(word for word in own if not word.endswith("="))],
                codecs.escape_decode(given)[0],
                said.split(" ... "),
                flags.startswith("DISK=full"),
            )


@pytest.fixture(scope="module")
def place(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files, and models: one of no checkpoint, or of another vocabulary or direction."""
    root = tmp_path_factory.mktemp("refusals") / "place"
    root.mkdir()
    for name, content in FILES.items():
        (root / name).write_text(content)
    for name in ("corpus", "data"):
        (root / name).symlink_to(trained / name)
    for name, sides in CORPORA.items():
        (root / name).mkdir()
        for side, content in zip(("en", "de"), sides, strict=False):
            (root / name / f"train.{side}").write_bytes(content)
    problem = registry.problem("translate_ende", data_source=str(trained / "corpus"), vocab_size=300)
    problem.generate_data(root / "other_data")
    run = Run.load(trained / "out")
    changes = {"untrained": {}, "other": {"fingerprint": "another"}, "french": {"problem": "translate_enfr"}}
    for name in ("out", *changes, "busy"):
        folder = shutil.copytree(trained / "out", root / name)
        dataclasses.replace(run, **changes.get(name, {})).save(folder)
    (root / "untrained" / "model.ckpt-7.npz").unlink()
    (root / "busy" / LOCK_FILE).touch()
    return root


def write_nothing(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def differing(one: Path, other: Path) -> list[str]:
    """Names of files that two folders do not share, or with other contents."""
    found = filecmp.dircmp(one, other)
    names = [*found.left_only, *found.right_only, *found.diff_files]
    return names + [name for folder in found.common_dirs for name in differing(one / folder, other / folder)]


@pytest.mark.parametrize("case", cases(), ids=lambda case: shlex.join(case.words))
def test_refusals(case: Case, place: Path, tmp_path, capsys, monkeypatch) -> None:
    before, here = tmp_path / "before", tmp_path / "here"
    for folder in (before, here):
        shutil.copytree(place, folder, symlinks=True)
        (folder / "given").write_bytes(case.given)
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", os.fspath(here))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(case.given), encoding="utf-8"))
    if case.disk_is_full:
        monkeypatch.setattr(os, "fsync", write_nothing)
    with ModelFolder(here / "busy").lock():
        status = run_command(*case.words)
    said = capsys.readouterr()
    name = case.words[0]
    (line,) = [line for line in said.err.splitlines() if ": error: " in line]
    assert line.startswith(f"{name}: error: ")
    assert status == (2 if line.endswith(f"(see {name} --help)") else 1)
    assert (said.out, "Traceback" in said.err) == ("", False)
    at = 0
    for part in case.parts:
        at = line.find(part, at)
        assert at >= 0, line
        at += len(part)
    assert not differing(before, here), "a refused command leaves nothing behind"
