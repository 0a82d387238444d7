"""Writes data.json: checksums of the files of each kind of data, and of the batches that are read from it.

`python -m tests.contract.write_data`, where a change of generated files or of the order of training is
intended. The changelog must say so: data and unfinished trainings of users do not fit any more.
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival import registry
from t2t_revival.data.vocabulary import open_vocabulary
from tests.support.data_kinds import (
    HPARAMS,
    KINDS,
    dev_batches,
    first_batches,
    open_problem,
    training_batches,
    write_sources,
)

PATH = Path(__file__).with_name("data.json")
BATCHES = 40  # more than an epoch of most kinds
VARIABLE = ("origins", "given_vocabularies", "checksum", "vocab_fingerprint", "target_vocab_fingerprint")


@dataclass(frozen=True)
class Reading:
    """How a training reads a kind of data: hyperparameters, the settings of its batches, another problem."""

    kind: str
    hparams: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


READINGS = {kind: Reading(kind) for kind in KINDS} | {
    "another seed": Reading("plain", settings={"seed": 7}),
    "two replicas, accumulated": Reading("plain", settings={"replicas": 2, "accumulate": 3}),
    "few shapes": Reading("plain", {"length_bucket_step": 2.0}, {"pad_to_bucket": True}),
    "reversed problem": Reading("plain", problem="translate_ende_rev"),
    "subword dropout": Reading("plain", {"subword_dropout": 0.1}, {"seed": 1}),
    "subword dropout of subtokens": Reading("two given", {"subword_dropout": 0.3}, {"replicas": 2}),
    "subword dropout of sources": Reading(
        "mixture", {"subword_dropout": 0.3, "subword_dropout_side": "source"}, {"seed": 1}
    ),
    "guided": Reading("aligned", {"guided_alignment_weight": 0.1}),
    "guided, reversed problem": Reading(
        "aligned", {"guided_alignment_weight": 0.1}, {}, "translate_ende_rev"
    ),
    "weighted, accumulated": Reading("weighted", settings={"accumulate": 2}),
}


def generate(kind: str, sources: Path) -> Path:
    """Makes data of a kind beside its sources, unless it is there; returns its folder."""
    data_dir = sources / "data" / kind
    if not data_dir.exists():
        open_problem(KINDS[kind], sources).generate_data(data_dir)
    return data_dir


def files_of(kind: str, sources: Path) -> dict[str, Any]:
    """Returns for each file its checksum, of a vocabulary that of its pieces, and for metadata its content.

    The bytes of a SentencePiece model may depend on the library's version.
    """
    found: dict[str, Any] = {}
    for path in sorted(generate(kind, sources).iterdir()):
        if path.name.endswith(".meta.json"):
            found[path.name] = metadata_of(path, sources)
        elif path.name.startswith("vocab."):
            found[path.name] = checksum(json.dumps(open_vocabulary(path).pieces).encode())
        else:
            found[path.name] = checksum(path.read_bytes())
    return found


def metadata_of(path: Path, sources: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8").replace(f"{sources}/", ""))
    for counts in content["splits"].values():
        counts["lengths"] = checksum(json.dumps(counts["lengths"]).encode())
        del counts["shard_bytes"]
    return {name: value for name, value in content.items() if name not in VARIABLE}


def batches_of(name: str, sources: Path, stop: int = BATCHES) -> list[list[int]]:
    """Returns rows, source positions, target positions and checksum of the first batches of a training.

    After `stop` of them the training is resumed.
    """
    reading = READINGS[name]
    problem = registry.problem(reading.problem or KINDS[reading.kind].problem)
    data_dir = generate(reading.kind, sources)
    hparams = HPARAMS.replace(**reading.hparams)
    batches = training_batches(problem, data_dir, hparams, **reading.settings)
    read = first_batches(batches, stop)
    if stop < BATCHES:
        start = batches.position(stop)
        resumed = training_batches(problem, data_dir, hparams, **reading.settings, start=start)
        read += first_batches(resumed, BATCHES - stop)
    return [outline(batch) for batch in read]


def dev_batches_of(kind: str, sources: Path) -> list[list[int]]:
    """Returns the same of the batches of an evaluation."""
    problem = registry.problem(KINDS[kind].problem)
    return [outline(batch) for batch in dev_batches(problem, generate(kind, sources))]


def outline(batch: tuple[np.ndarray, ...]) -> list[int]:
    described = b"".join(f"{part.dtype}{part.shape}".encode() + part.tobytes() for part in batch)
    return [*batch[0].shape, batch[1].shape[1], checksum(described)]


def checksum(content: bytes) -> int:
    return zlib.crc32(content)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sources = write_sources(Path(folder))
        tables: dict[str, dict[str, Any]] = {
            "files": {kind: files_of(kind, sources) for kind in KINDS},
            "batches": {name: batches_of(name, sources) for name in READINGS},
            "dev_batches": {kind: dev_batches_of(kind, sources) for kind in KINDS},
        }
    rows = (
        f'"{table}": {{\n'
        + ",\n".join(f'"{name}": {json.dumps(row, separators=(",", ":"))}' for name, row in rows.items())
        + "\n}"
        for table, rows in tables.items()
    )
    PATH.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
