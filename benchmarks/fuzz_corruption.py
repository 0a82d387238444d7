"""Corrupts files at random and reads them: each corruption must be detected, or change nothing.

    python benchmarks/fuzz_corruption.py --cases=1000

Shards, vocabularies, metadata, hparams.json, run.json and checkpoints are read as the commands read them. A
case is "detected" if it ends in a `T2TError` that names the file, "harmless" if the content read is that
written. Every other outcome is a fault, is listed, and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival import HParams, T2TError, Text2TextProblem, registry
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.data import examples
from t2t_revival.model_folder import ModelFolder, Run

DETECTED, HARMLESS = "detected", "harmless"
LINES = ("The old dog sleeps.", "Der alte Hund schläft.", "▁ 🦓")
PAIRS = {"train": 200, "dev": 20}


@dataclass(frozen=True)
class Kind:
    """Files of one kind, and the function by which commands read them."""

    name: str
    paths: list[Path]
    read: Callable[[Path], Any]


@dataclass(frozen=True)
class Case:
    """One corruption and its outcome: `DETECTED`, `HARMLESS`, or a description of the fault."""

    kind: str
    damage: str
    path: Path
    outcome: str


def flip_bits(content: bytes, draw: random.Random) -> bytes:
    """Flips one to three bits."""
    damaged = bytearray(content)
    for _ in range(draw.randint(1, 3)):
        damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(damaged)


def truncate(content: bytes, draw: random.Random) -> bytes:
    """Cuts off the end."""
    return content[: draw.randrange(len(content))]


def zero_range(content: bytes, draw: random.Random) -> bytes:
    """Sets a range to zero, like a block that was never written."""
    begin = draw.randrange(len(content))
    end = min(len(content), begin + draw.choice((1, 16, 512, 4096)))
    return content[:begin] + bytes(end - begin) + content[end:]


def append(content: bytes, draw: random.Random) -> bytes:
    """Appends random bytes."""
    return content + draw.randbytes(draw.choice((1, 12, 500)))


DAMAGES = {
    "flipped bits": flip_bits,
    "truncated": truncate,
    "zeroed range": zero_range,
    "appended bytes": append,
}


def make_files(folder: Path) -> list[Kind]:
    """Creates a small data_dir and output_dir in `folder`."""
    corpus, data, out = (folder / name for name in ("corpus", "data", "out"))
    corpus.mkdir(parents=True)
    for split, count in PAIRS.items():
        for language, words in (("en", "the dog {} sees {} cats"), ("de", "der Hund {} sieht {} Katzen")):
            lines = "".join(words.format(n, n % 7) + "\n" for n in range(count))
            (corpus / f"{split}.{language}").write_text(lines, encoding="utf-8")
    problem = registry.problem("translate_ende", data_source=str(corpus), vocab_size=300)
    problem.generate_data(data)
    vocabulary = problem.open(data).vocabularies.inputs
    run = Run("translate_ende", "tiny", str(data), vocabulary.path.name, vocabulary.fingerprint, {})
    ModelFolder(out).save(run, HParams(), vocabulary.path)
    generator = np.random.default_rng(1)
    arrays = {
        f"{prefix}transformer/{name}": generator.standard_normal((40, 30)).astype(np.float32)
        for prefix in (checkpoints.MODEL, checkpoints.OPTIMIZER)
        for name in ("embeddings", "kernel", "bias")
    }
    checkpoint = out / checkpoints.file_name(7)
    checkpoints.save(checkpoint, arrays, {"step": 7})
    reader = registry.problem("translate_ende")  # as a command without --data_source
    return [
        Kind("shard", sorted(data.glob("translate_ende-*-of-*")), lambda path: _shard(reader, path)),
        Kind(
            "vocabulary", [data / run.vocabulary], lambda path: _pieces(reader.open(data).vocabularies.inputs)
        ),
        Kind(
            "vocabulary of a run",
            [out / run.vocabulary],
            lambda path: _pieces(ModelFolder(out).vocabularies.inputs),
        ),
        Kind("metadata", [data / "translate_ende.meta.json"], lambda path: reader.open(data).metadata),
        Kind("hparams.json", [out / "hparams.json"], lambda path: ModelFolder(out).hparams),
        Kind("run.json", [out / "run.json"], lambda path: Run.load(out)),
        Kind("checkpoint", [checkpoint], _checkpoint),
    ]


def _shard(problem: Text2TextProblem, path: Path) -> list[tuple[list[int], list[int]]]:
    """Reads all examples of the split that a shard belongs to."""
    return list(examples.read(problem.open(path.parent).split(path.name.split("-")[1])))


def _pieces(vocabulary: Any) -> list[list[int]]:
    return vocabulary.encode_batch(LINES)


def _checkpoint(path: Path) -> tuple[dict, dict[str, bytes]]:
    arrays, meta = checkpoints.load(path)
    return meta, {f"{name} {array.shape} {array.dtype}": array.tobytes() for name, array in arrays.items()}


def fuzz(folder: Path, cases: int, seed: int = 1) -> list[Case]:
    """Corrupts one file of `folder` at a time, kinds of files and of damage in turn, and restores it.

    Args:
        folder: an empty folder.
        cases: number of cases.
        seed: of files and damage.
    """
    draw = random.Random(seed)
    kinds = make_files(folder)
    expected = {kind.name: kind.read(kind.paths[0]) for kind in kinds if kind.name != "shard"}
    done = []
    for number in range(cases):
        kind = kinds[number % len(kinds)]
        damage = list(DAMAGES)[number // len(kinds) % len(DAMAGES)]
        path = draw.choice(kind.paths)
        wanted = expected[kind.name] if kind.name in expected else kind.read(path)
        content = path.read_bytes()
        path.write_bytes(DAMAGES[damage](content, draw))
        done.append(Case(kind.name, damage, path, _outcome(kind, path, wanted)))
        path.write_bytes(content)
    return done


def _outcome(kind: Kind, path: Path, wanted: Any) -> str:
    try:
        found = kind.read(path)
    except T2TError as error:
        return DETECTED if str(path) in str(error) else f"the message does not name the file: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return HARMLESS if found == wanted else "not detected: the content differs from what was written"


def table(cases: list[Case]) -> str:
    """Returns the counts for each kind of file and of damage, in Markdown."""
    lines = ["| file | damage | cases | detected | harmless | faults |", "|---|---|---:|---:|---:|---:|"]
    counts = Counter((case.kind, case.damage, case.outcome) for case in cases)
    for kind, damage in dict.fromkeys((case.kind, case.damage) for case in cases):
        all_of = sum(n for key, n in counts.items() if key[:2] == (kind, damage))
        detected, harmless = (counts[kind, damage, outcome] for outcome in (DETECTED, HARMLESS))
        faults = all_of - detected - harmless
        lines.append(f"| {kind} | {damage} | {all_of} | {detected} | {harmless} | {faults} |")
    outcomes = Counter(case.outcome for case in cases)
    faults = len(cases) - outcomes[DETECTED] - outcomes[HARMLESS]
    lines.append(f"| all | | {len(cases)} | {outcomes[DETECTED]} | {outcomes[HARMLESS]} | {faults} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Corrupts files at random and reads them.")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        cases = fuzz(Path(folder) / "fuzz", arguments.cases, arguments.seed)
    print(table(cases))
    faults = [case for case in cases if case.outcome not in (DETECTED, HARMLESS)]
    for case in faults:
        print(f"{case.path.name}, {case.damage}: {case.outcome}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
