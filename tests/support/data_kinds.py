"""Small data_dirs of every kind: their sources, how they are made, and how a training reads them.

Tests that hold what generation and reading have in common go through these functions alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival import HParams, Text2TextProblem, registry
from t2t_revival.data.batching import (
    BEGINNING,
    BatchSettings,
    Element,
    IteratorState,
    TrainingBatches,
    evaluation_batches,
)
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from tests.support.copy_shards import split_of
from tests.support.line_corpus import write_lines, write_pairs

WORDS = [
    ("dog", "Hund"),
    ("houses", "Häuser"),
    ("1,000", "1.000"),
    ("trees,", "Bäume,"),
    ("café", "Café"),
    ("日本", "Japan"),
    ("don't", "nicht"),
    ("under_score", "back\\slash"),
    ("garden.", "Garten!"),
    ("(NP", "\u201ezwei\u00a0Räume\u201c"),
    ("window", "Fenster"),
    ("sees", "sieht"),
]
FAULTY = [("", "leer"), ("leer", " \t"), ("same sides", "same sides"), ("CafÃ©", "Lokal"), ("1 2", "3 4")]
MIXTURE = """
corpora:
- {name: back, source: talks, weight: 3, tag: <bt>, limit: 40}
- {name: news, source: news, weight: 1}
"""
LANGUAGES = """
corpora:
- {name: en-de, source: news, weight: 2, both_directions: true}
- {name: de-en, source: talks, weight: 1, languages: en-de}
"""
HPARAMS = HParams(batch_size=200, max_length=40, min_length_bucket=4, length_bucket_step=1.5)


@dataclass(frozen=True)
class Kind:
    """Data of a problem, whose source is a file or folder of `write_sources`, made with these settings."""

    source: str
    problem: str = "translate_ende"
    settings: Mapping[str, Any] = field(default_factory=dict)
    vocab_files: Sequence[str] = ()


KINDS = {
    "plain": Kind("news", settings={"vocab_size": 330}),
    "subwords": Kind("news", vocab_files=["vocab.given.subwords"]),
    "characters": Kind("talks", settings={"vocab_size": 310}),
    "cleaned": Kind("news", settings={"vocab_size": 330, "clean": True}),
    "separate": Kind("talks", settings={"vocab_size": 320, "separate_vocabularies": True}),
    "two given": Kind("talks", vocab_files=["vocab.given.subwords", "vocab.short.subwords"]),
    "extended": Kind("talks", vocab_files=["vocab.short.subwords"], settings={"update_vocab": True}),
    "weighted": Kind("weighted", vocab_files=["vocab.given.subwords"]),
    "aligned": Kind("aligned", vocab_files=["vocab.given.subwords"], settings={"clean": True}),
    "mixture": Kind("mixture.yaml", settings={"vocab_size": 340}),
    "languages": Kind("languages.yaml", "translate_many", settings={"vocab_size": 340, "clean": True}),
    "trees": Kind("trees", "parse_wsj", settings={"vocab_size": 330}),
}


def write_sources(folder: Path) -> Path:
    """Writes the sources and given vocabularies of all kinds."""
    news, talks = pairs(240, "news"), pairs(60, "talks")
    for at, pair in enumerate([*FAULTY, news[3], news[4]]):
        news.insert(20 * at, pair)
    write_pairs(folder / "news", {"train": news, "dev": pairs(24, "dev"), "test": pairs(5, "test")})
    write_pairs(folder / "talks", {"train": talks, "dev": pairs(10, "talks dev")})
    weighted = write_pairs(folder / "weighted", {"train": news, "dev": talks[:9]})
    write_lines(weighted / "train.weights", [f"{number % 7 / 2}" for number in range(len(news))])
    aligned = write_pairs(folder / "aligned", {"train": news, "dev": talks[:9]})
    write_lines(aligned / "train.align", [links(*pair) for pair in news])
    (folder / "mixture.yaml").write_text(MIXTURE)
    (folder / "languages.yaml").write_text(LANGUAGES)
    (folder / "trees").mkdir()
    for split, count in (("train", 120), ("dev", 8)):
        write_lines(folder / "trees" / f"{split}.trees", trees(count, split))
    text = [side for pair in news for side in pair]
    for name, lines, size in (("given", text, 300), ("short", text[:20], 100)):
        vocabulary = SubwordVocabulary.build_from_generator(lines, size)
        vocabulary.store_to_file(folder / f"vocab.{name}.subwords")
    return folder


def pairs(count: int, seed: str) -> list[tuple[str, str]]:
    """Returns pairs of 1 to 12 words, of which each word translates the one at its place."""
    draw = random.Random(seed)
    words = ([draw.choice(WORDS) for _ in range(draw.randint(1, 12))] for _ in range(count))
    return [(" ".join(pair[0] for pair in row), " ".join(pair[1] for pair in row)) for row in words]


def links(source: str, target: str) -> str:
    """Returns the alignment of words at the same place, but not of each fourth."""
    count = min(len(source.split(" ")), len(target.split(" "))) if source.strip() and target.strip() else 0
    return " ".join(f"{place}-{place}" for place in range(count) if place % 4 != 3)


def trees(count: int, seed: str) -> list[str]:
    draw = random.Random(seed)
    nouns = [f"(NP (DT the) (NN {noun}))" for noun in ("dog", "cat", "house", "garden")]
    verbs = [f"(VBZ {verb})" for verb in ("sees", "likes")]

    def sentence(depth: int) -> str:
        end = f"(SBAR (IN that) {sentence(depth - 1)})" if depth else draw.choice(nouns)
        return f"(S {draw.choice(nouns)} (VP {draw.choice(verbs)} {end}))"

    return [f"(TOP {sentence(draw.randint(0, 2))})" for _ in range(count)]


def open_problem(kind: Kind, sources: Path) -> Text2TextProblem:
    """Returns the problem of a kind of data that is not made yet."""
    given = {"vocab_file": [sources / name for name in kind.vocab_files]} if kind.vocab_files else {}
    return registry.problem(
        kind.problem, data_source=str(sources / kind.source), **{**kind.settings, **given}
    )


def training_batches(
    problem: Text2TextProblem,
    data_dir: Path,
    hparams: HParams = HPARAMS,
    start: IteratorState = BEGINNING,
    **settings: Any,
) -> TrainingBatches:
    """Opens the batches that a training reads from a data_dir."""
    splits = problem.open(data_dir).vocabularies.splits() if hparams.subword_dropout else None
    return TrainingBatches(
        problem.open(data_dir).split("train"), hparams, BatchSettings(**settings), start=start, splits=splits
    )


def open_batches(
    paths: list[Path], hparams: HParams = HPARAMS, start: IteratorState = BEGINNING, **settings: Any
) -> TrainingBatches:
    """Opens the batches of shards."""
    return TrainingBatches(split_of(paths), hparams, BatchSettings(**settings), start=start)


def first_batches(batches: TrainingBatches, count: int) -> list[tuple[np.ndarray, ...]]:
    """Returns the first batches: inputs, targets, weights of rows or of all, and word alignments if any."""
    return [arrays_of(element) for element in islice(batches.elements(), count)]


def arrays_of(element: Element) -> tuple[np.ndarray, ...]:
    """Returns the arrays of `first_batches`."""
    alignments = [element[name] for name in ("alignments",) if name in element]
    return element["inputs"], element["targets"], element["weights"][:, 0], *alignments


def read_epochs(batches: TrainingBatches, count: int) -> list[list[tuple[list[int], list[int]]]]:
    """Returns the pairs of ids of the first epochs, without padding, in the order of the batches."""
    epochs: list[list[tuple[list[int], list[int]]]] = [[] for _ in range(count + 1)]
    for number, batch in enumerate(batches.elements(), start=1):
        epoch = batches.position(number).epoch
        epochs[epoch] += pairs_of(arrays_of(batch))
        if epoch == count:
            return epochs[:-1]
    raise AssertionError("batches end")


def pairs_of(batch: tuple[np.ndarray, ...]) -> list[tuple[list[int], list[int]]]:
    """Returns the pairs of ids of a batch, without padding and rows of padding alone."""
    sides = ([[token for token in row if token] for row in side.tolist()] for side in batch[:2])
    return [pair for pair in zip(*sides, strict=True) if any(pair)]


def dev_batches(problem: Text2TextProblem, data_dir: Path, **settings: Any) -> list[tuple[np.ndarray, ...]]:
    """Returns the batches of an evaluation: inputs, targets, and 1 for each token of these."""
    made = evaluation_batches(problem.open(data_dir).split("dev"), HPARAMS, **settings)
    return [(batch["inputs"], batch["targets"], (batch["targets"] != 0).astype(np.float32)) for batch in made]
