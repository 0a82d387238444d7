"""Throughput of the input pipeline, and a profile of it.

    python benchmarks/input_pipeline.py --data_source=FOLDER

Generates the data of a translation problem from a folder of text, and reads it as a training does:

- generation: pairs/s of one process, without training the vocabulary, beside SentencePiece alone on the same
  lines;
- reading: target tokens/s of the batches within a given time, on all cores; with `--processes`, of so many
  processes side by side, without TensorFlow, as each process of a training under JAX reads them;
- padding: the padding's share of a batch's positions, on both sides, over an epoch.

The profile lists the functions in which reading, without TensorFlow, spends most of its time.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import itertools
import multiprocessing
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from t2t_revival import HParams, T2TError, Text2TextProblem, registry
from t2t_revival.data.batching import TrainingBatches
from t2t_revival.data.records import SplitData
from t2t_revival.data.vocabulary.text_encoder import Splits
from t2t_revival.problems.problem import TRAIN
from t2t_revival.training.engines.tensorflow_engine import batch_dataset

NEEDED = 500_000  # target tokens/s that training `base` consumes on a fast GPU
ROWS = 12  # of the profile


@dataclass(frozen=True)
class Generation:
    """Pairs per second of one process, and of SentencePiece alone."""

    pairs: int
    ours: float
    bare: float


@dataclass(frozen=True)
class Reading:
    """Target tokens per second, and the share of padding among the positions of both sides."""

    tokens: float
    padding: float


def measure_generation(problem: Text2TextProblem, data_dir: Path, rounds: int) -> Generation:
    """Times both in turns on one core and returns medians; data_dir must hold the data."""
    assert problem.config.data_source is not None
    source = problem.make_source(problem.config.data_source, None)
    pairs = list(source.pairs(TRAIN, 0, source.count(TRAIN)))
    sides = [list(side) for side in zip(*pairs, strict=True)]
    vocabulary = problem.open(data_dir).vocabularies.inputs
    ours, bare = [], []
    with one_core():
        for _ in range(rounds):
            for shard in problem.open(data_dir).split(TRAIN).paths:
                shard.unlink()
            began = time.perf_counter()
            problem.generate_data(data_dir)
            ours.append(len(pairs) / (time.perf_counter() - began))
            began = time.perf_counter()
            for side in sides:
                vocabulary.encode_batch(side)
            bare.append(len(pairs) / (time.perf_counter() - began))
    return Generation(len(pairs), median(ours), median(bare))


@contextmanager
def one_core() -> Iterator[None]:
    """Context in which this process and its children run on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measure_reading(
    data: SplitData, hparams: HParams, splits: tuple[Splits, Splits], seconds: float
) -> Reading:
    """Reads the dataset as `fit` does, with prefetching."""
    batches = TrainingBatches(data, hparams, seed=1, splits=splits)
    count, positions = 0, 0
    elements = iter(batch_dataset(batches))
    next(elements)  # fills the buffers
    first = batches.tokens(1)
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        features, _, _ = next(elements)
        positions += sum(int(side.shape[0] * side.shape[1]) for side in features.values())
        count += 1
    passed = time.perf_counter() - began
    last = batches.tokens(count + 1)
    target, source = last.target_tokens - first.target_tokens, last.source_tokens - first.source_tokens
    return Reading(target / passed, 1 - (target + source) / positions)


def measure_processes(
    data: SplitData, hparams: HParams, splits: tuple[Splits, Splits], seconds: float, count: int
) -> float:
    """Returns the target tokens per second of all processes together, each of which reads everything."""
    processes = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, processes) as pool:
        own = [pool.submit(read_elements, data, hparams, splits, seconds) for _ in range(count)]
        return sum(future.result() for future in own)


def read_elements(data: SplitData, hparams: HParams, splits: tuple[Splits, Splits], seconds: float) -> float:
    """Reads batches without TensorFlow; returns target tokens per second."""
    batches = TrainingBatches(data, hparams, seed=1, splits=splits)
    elements = batches.elements()
    next(elements)
    count, first, began = 0, batches.tokens(1), time.perf_counter()
    while time.perf_counter() - began < seconds:
        next(elements)
        count += 1
    passed = time.perf_counter() - began
    return (batches.tokens(count + 1).target_tokens - first.target_tokens) / passed


def profile_reading(data: SplitData, hparams: HParams, splits: tuple[Splits, Splits], batches: int) -> str:
    """Returns the functions with the largest own time, as a table."""
    elements = TrainingBatches(data, hparams, seed=1, splits=splits).elements()
    profile = cProfile.Profile()
    profile.runcall(lambda: list(itertools.islice(elements, batches)))
    text = io.StringIO()
    pstats.Stats(profile, stream=text).strip_dirs().sort_stats("tottime").print_stats(ROWS)
    return "\n".join(line for line in text.getvalue().splitlines() if line.strip())


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data_source", default="sample", help="a folder with train.en train.de dev.en dev.de"
    )
    parser.add_argument("--problem", default="translate_ende")
    parser.add_argument("--hparams_set", default="base")
    parser.add_argument("--vocab_size", type=int, default=0, help="0 chooses by problem and corpus")
    parser.add_argument("--subword_dropout", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=0)
    values = parser.parse_args(argv)
    hparams = registry.hparams(values.hparams_set).replace(subword_dropout=values.subword_dropout)
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        problem = registry.problem(
            values.problem, data_source=values.data_source, vocab_size=values.vocab_size
        )
        try:
            problem.generate_data(data_dir)
        except T2TError as error:
            parser.error(str(error))
        generation = measure_generation(problem, data_dir, values.rounds)
        opened = problem.open(data_dir)
        data, splits = opened.split(TRAIN), opened.vocabularies.splits()
        reading = measure_reading(data, hparams, splits, values.seconds)
        side_by_side = 0.0
        if values.processes:
            side_by_side = measure_processes(data, hparams, splits, values.seconds, values.processes)
        profile = profile_reading(data, hparams, splits, 200)
    share = generation.ours / generation.bare
    print(f"generation  {generation.ours:12,.0f} pairs/s of one process, {generation.pairs:,} pairs")
    print(f"            {generation.bare:12,.0f} pairs/s SentencePiece alone; {share:.0%} of it")
    print(f"reading     {reading.tokens:12,.0f} target tokens/s ({reading.tokens / NEEDED:.1f} x {NEEDED:,})")
    if side_by_side:
        print(f"            {side_by_side:12,.0f} target tokens/s of {values.processes} processes together")
    print(f"padding     {reading.padding:12.1%} of both sides' positions, {values.hparams_set}'s batches")
    print(profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
