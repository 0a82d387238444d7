"""Contestants of decode_speed.py, and the export of their models."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

BASELINE = "ctranslate2-float32"


@dataclass(frozen=True)
class Entry:
    """A contestant of decode_speed.py."""

    engine: str  # name in decoding.py
    export: Sequence[str] | None = None  # flags of t2t-exporter; `None` loads the output_dir
    options: dict[str, Any] = field(default_factory=dict)  # of the engine


MODIFIERS = {  # at the end of a contestant's name, as in ctranslate2-int8-greedy-shortlist
    "early": "early_stopping=True",
    "greedy": "beam_size=1",
    "shortlist": "shortlist=on",  # skipped without the output_dir's shortlist.npz
}
CTRANSLATE2 = ("--format=ctranslate2",)
LITERT = ("--format=litert",)
CONTESTANTS = {
    "t2t-decoder": Entry("decoder"),
    "t2t-decoder-ctranslate2-float32": Entry("decoder", options={"engine": "ctranslate2"}),
    "t2t-decoder-ctranslate2-int8": Entry("decoder", options={"engine": "ctranslate2", "precision": "int8"}),
    "saved_model-float32": Entry("saved_model", ()),
    "saved_model-bfloat16": Entry("saved_model", ("--quantize=bfloat16",)),
    "saved_model-int8_weights": Entry("saved_model", ("--quantize=int8_weights",)),
    "litert-float32": Entry("litert", LITERT),
    "litert-int8": Entry("litert", (*LITERT, "--quantize=int8")),
    BASELINE: Entry("ctranslate2", CTRANSLATE2, {"compute_type": "float32"}),
    "ctranslate2-int8": Entry("ctranslate2", CTRANSLATE2, {"compute_type": "int8"}),
    "marian": Entry("marian", ("--format=marian",)),
}


def entry_of(name: str) -> Entry:
    """Returns the contestant of a name, which may end with `MODIFIERS`.

    Raises:
        ValueError: there is no such contestant.
    """
    words = name.split("-")
    modifiers: list[str] = []
    while words and words[-1] in MODIFIERS:
        modifiers.insert(0, words.pop())
    entry = CONTESTANTS.get("-".join(words))
    if entry is None:
        ends = ", ".join(f"-{modifier}" for modifier in MODIFIERS)
        raise ValueError(f"unknown: {name}; known: {', '.join(CONTESTANTS)}, which may end with {ends}")
    if not modifiers:
        return entry
    settings = ",".join(MODIFIERS[modifier] for modifier in modifiers)
    if "shortlist" in modifiers and "ctranslate2" not in words:
        raise ValueError(f"{name}: shortlists are CTranslate2's")
    if entry.export is None:
        return replace(entry, options={**entry.options, "decode_hparams": settings})
    if entry.engine != "ctranslate2":
        return replace(entry, export=(*entry.export, f"--decode_hparams={settings}"))
    if "early" in modifiers:
        raise ValueError(f"{name}: CTranslate2 always stops early")
    return _bare_ctranslate2(entry, modifiers)


def _bare_ctranslate2(entry: Entry, modifiers: Sequence[str]) -> Entry:
    options, export = dict(entry.options), entry.export
    if "greedy" in modifiers:
        options["beam_size"] = 1
    if "shortlist" in modifiers:
        options["use_vmap"] = True
        export = (*CTRANSLATE2, f"--decode_hparams={MODIFIERS['shortlist']}")
    return replace(entry, export=export, options=options)


def exported(output_dir: Path, contestants: Sequence[str], scratch: Path) -> dict[str, Path]:
    """Exports the models, and returns each contestant's folder."""
    folders: dict[str, Path] = {}
    made: dict[Sequence[str], Path] = {}
    for key in contestants:
        export = entry_of(key).export
        if export is None:
            folders[key] = output_dir
            continue
        if export not in made:
            target = scratch / f"export-{len(made)}"
            flags = [f"--output_dir={output_dir}", f"--export_dir={target}"]
            done = subprocess.run(
                [sys.executable, "-m", "t2t_revival.cli.exporter", *export, *flags],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                say(f"{key}: skipped: {done.stderr.strip().splitlines()[-1]}")
                continue
            versions = [path for path in target.iterdir() if path.name.isdecimal()]
            made[export] = versions[0] if versions else target
        folders[key] = made[export]
    return folders


def say(line: str) -> None:
    """Prints a line to stderr, unbuffered."""
    print(line, file=sys.stderr, flush=True)
