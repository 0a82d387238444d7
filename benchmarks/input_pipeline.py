"""Throughput of the input pipeline: making a translation problem's data, and reading it as a training does.

    python benchmarks/input_pipeline.py --data_source=FOLDER

- generation: pairs/s of one process, without training the vocabulary, beside SentencePiece alone on the same
  lines, both in turns on one core;
- reading: target tokens/s of the batches within a given time, on all cores; with `--processes`, of so many
  processes side by side, without TensorFlow, as each process of a training under JAX reads them;
- padding: the padding's share of the positions of these batches, on both sides, and the tokens' on each; with
  `--one_shape_per_bucket` or `--packed`, of batches as XLA compiles them.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import result_file

from t2t_revival import T2TError, Text2TextProblem, registry
from t2t_revival.data.batching import BatchSettings, TrainingBatches
from t2t_revival.data.examples import SIDES
from t2t_revival.problems.problem import TRAIN
from t2t_revival.training.engines.tensorflow_engine import batch_dataset


def measure_generation(problem: Text2TextProblem, text: str, data_dir: Path, rounds: int) -> dict[str, Any]:
    """Makes the shards of data_dir again in each round; returns pairs/s, and the share of the medians."""
    source = problem.make_source(text, None)
    pairs = list(source.pairs(TRAIN, 0, source.count(TRAIN)))
    sides = [list(side) for side in zip(*pairs, strict=True)]
    vocabulary = problem.open(data_dir).vocabularies.inputs
    ours, bare = [], []
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # of the processes that are started, too
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
    os.sched_setaffinity(0, cores)
    speeds = {"pairs_per_s": ours, "sentencepiece_pairs_per_s": bare}
    return {"name": "generation", "pairs": len(pairs), **speeds, "share": median(ours) / median(bare)}


def measure_reading(make: Callable[[], TrainingBatches], prefetch: bool, seconds: float) -> dict[str, float]:
    """Reads batches, prefetched by TensorFlow as in `fit` or without it; positions are of both sides."""
    batches = make()
    elements = batches.elements()
    if prefetch:
        elements = (features for features, *_ in batch_dataset(batches))
    sides = ([element[name] for name in SIDES] for element in elements)
    next(sides)  # fills the buffers
    count, positions, first, began = 1, [0, 0], batches.tokens(1), time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        positions = [
            sum(pair) for pair in zip(positions, (math.prod(side.shape) for side in next(sides)), strict=True)
        ]
        count += 1
    target, source, _ = (now - before for now, before in zip(batches.tokens(count), first, strict=True))
    return {
        "target_tokens_per_s": target / passed,
        "padding_share": 1 - (target + source) / sum(positions),
        "source_share": source / positions[0],
        "target_share": target / positions[1],
    }


def main(argv: list[str] | None = None) -> None:
    """Entry point."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--data_source", default="sample", help="folder with train.en train.de dev.en dev.de")
    parser.add_argument("--problem", default="translate_ende")
    parser.add_argument("--hparams_set", default="base")
    parser.add_argument("--vocab_size", type=int, default=0, help="0 chooses by problem and corpus")
    parser.add_argument("--subword_dropout", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--one_shape_per_bucket", action="store_true")
    parser.add_argument("--packed", action="store_true")
    result_file.add_flag(parser)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        try:
            hparams = registry.hparams(args.hparams_set, f"subword_dropout={args.subword_dropout}")
            problem = registry.problem(args.problem, data_source=args.data_source, vocab_size=args.vocab_size)
            problem.generate_data(Path(folder))
        except T2TError as error:
            parser.error(str(error))
        found = [measure_generation(problem, args.data_source, Path(folder), args.rounds)]
        data = problem.open(Path(folder))
        make = partial(
            TrainingBatches,
            data.split(TRAIN),
            hparams,
            BatchSettings(seed=1, pad_to_bucket=args.one_shape_per_bucket, packed=args.packed),
            splits=data.vocabularies.splits(),
        )
        found.append({"name": "reading", **measure_reading(make, True, args.seconds)})
        if args.processes:
            with ProcessPoolExecutor(args.processes, get_context("spawn")) as pool:
                read = pool.map(partial(measure_reading, make, False), [args.seconds] * args.processes)
                speed = sum(one["target_tokens_per_s"] for one in read)
            found.append({"name": f"reading, {args.processes} processes", "target_tokens_per_s": speed})
    for figures in found:
        print(", ".join(f"{name} {value}" for name, value in figures.items()))
    result_file.write(args.out, found)


if __name__ == "__main__":
    main()
