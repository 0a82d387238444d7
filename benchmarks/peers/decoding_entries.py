"""Contestants of decode_speed.py, and the export of their models."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peers.processes import PEERS, missing

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder

BASELINE = "ctranslate2-float32"


@dataclass(frozen=True)
class Entry:
    """A contestant of decode_speed.py."""

    engine: str  # name in its script
    export: Sequence[str] | None = (
        None  # arguments of "python" that export its folder; `None` loads the output_dir
    )
    options: dict[str, Any] = field(default_factory=dict)  # of the engine
    script: str = "decoding.py"  # in peers/
    python: str | None = None  # flag with its interpreter; `None` stands for this one
    module: str = ""  # that the interpreter must import

    @property
    def ids(self) -> bool:
        """True if inputs and outputs are ids instead of text."""
        return self.python is not None


MODIFIERS = {  # at the end of a contestant's name, as in ctranslate2-int8-greedy-shortlist
    "early": "early_stopping=True",
    "greedy": "beam_size=1",
    "shortlist": "shortlist=on",  # skipped without the output_dir's shortlist.npz
}
EXPORTER = ("-m", "t2t_revival.cli.exporter")
CTRANSLATE2 = (*EXPORTER, "--format=ctranslate2")
LITERT = (*EXPORTER, "--format=litert")
WEIGHTS = str(PEERS / "weights.py")
CONTESTANTS = {
    "t2t-decoder": Entry("decoder"),
    "t2t-decoder-int8": Entry("decoder", options={"precision": "int8"}),
    "t2t-decoder-ctranslate2-float32": Entry("decoder", options={"engine": "ctranslate2"}),
    "t2t-decoder-ctranslate2-int8": Entry("decoder", options={"engine": "ctranslate2", "precision": "int8"}),
    "saved_model-float32": Entry("saved_model", EXPORTER),
    "saved_model-bfloat16": Entry("saved_model", (*EXPORTER, "--quantize=bfloat16")),
    "saved_model-int8": Entry("saved_model", (*EXPORTER, "--quantize=int8")),
    "saved_model-int8_weights": Entry("saved_model", (*EXPORTER, "--quantize=int8_weights")),
    "litert-float32": Entry("litert", LITERT),
    "litert-int8": Entry("litert", (*LITERT, "--quantize=int8")),
    BASELINE: Entry("ctranslate2", CTRANSLATE2, {"compute_type": "float32"}),
    "ctranslate2-int8": Entry("ctranslate2", CTRANSLATE2, {"compute_type": "int8"}),
    "opennmt-tf-float32": Entry(
        "opennmt",
        (WEIGHTS, "--peer=opennmt"),
        script="onmt_decoding.py",
        python="onmt_python",
        module="opennmt",
    ),
    "tensor2tensor-float32": Entry(
        "t2t",
        (WEIGHTS, "--peer=t2t"),
        script="t2t_decoding.py",
        python="t2t_python",
        module="tensor2tensor",
    ),
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
    if entry is None or (entry.ids and modifiers):
        raise ValueError(
            f"unknown: {name}; known: {', '.join(CONTESTANTS)}, of which those without ids may end with "
            + ", ".join(f"-{modifier}" for modifier in MODIFIERS)
        )
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


def present(contestants: Iterable[str], args: argparse.Namespace) -> list[str]:
    """Returns the available contestants; stderr names what the others lack."""
    available = []
    for key in contestants:
        entry = entry_of(key)
        reason = entry.python and missing(entry.python, entry.module, getattr(args, entry.python))
        if reason:
            say(f"{key}: skipped: {reason}")
        else:
            available.append(key)
    return available


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
                [sys.executable, *export, *flags], capture_output=True, text=True, check=False
            )
            if done.returncode:
                say(f"{key}: skipped: {done.stderr.strip().splitlines()[-1]}")
                continue
            versions = [path for path in target.iterdir() if path.name.isdecimal()]
            made[export] = versions[0] if versions else target
        folders[key] = made[export]
    return folders


def write_ids(lines: Sequence[str], vocabulary: TextEncoder, path: Path) -> None:
    """Writes the ids of each line without EOS, as in "17 4 290"."""
    encoded = vocabulary.encode_batch(lines)
    path.write_text("".join(" ".join(map(str, ids)) + "\n" for ids in encoded), encoding="utf-8")


def say(line: str) -> None:
    """Prints a line to stderr, unbuffered."""
    print(line, file=sys.stderr, flush=True)
