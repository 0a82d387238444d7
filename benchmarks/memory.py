"""Whether memory stays flat: a training of many updates, data of many pairs made, and an epoch of it read.

    python benchmarks/memory.py

- training: `t2t-trainer` over sentences of all lengths, with evaluations and checkpoints. The last quarter of
  the updates may hold little more than the second; the first, in which all buckets of lengths must come, is
  for graphs and caches.
- generation: `t2t-datagen` on a tenth of the pairs, and on all. The corpora are written line by line, and are
  none of its memory.
- reading: the batches of an epoch and a half; the second half may hold little more than the first.

Memory is the resident set (RSS) from /proc, in MB of 1,000,000 bytes, of a process and all that it has
started; pages that they share count for each. Where a bound is not held the exit status is 1.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Text2TextProblem

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

SIZES = "num_hidden_layers=1,hidden_size=64,filter_size=128,num_heads=2,batch_size=2048,max_length=256"
SECONDS = 0.1  # between two looks
MB = 1_000_000
TRAINING_BOUND = 60  # MB by which the last quarter of a training may hold more than the second
GENERATION_BOUND = 50  # MB by which ten times the pairs may need more
READING_BOUND = 50  # MB by which the later half of reading may hold more than the first
SYLLABLES = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]
WORDS = 30_000
VOCAB_SIZE = 2000
PARTS = ("training", "generation", "reading")
STEP = re.compile(r"step +(\d+)/")
Report = Callable[[str], None]


@dataclass(frozen=True)
class Sample:
    """What processes held at a moment, in MB: the first one, all of them; and the update they were at."""

    main: float
    all: float
    step: int


class Watch:
    """Looks at a process, and at all that it starts, while the context lasts.

    Args:
        pid: of the process.

    Attributes:
        samples: what was seen.
        step: goes into the samples.
    """

    def __init__(self, pid: int) -> None:
        self.samples: list[Sample] = []
        self.step = 0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.is_set():
            sizes = [resident(pid) for pid in family(self._pid)]
            if any(sizes):
                self.samples.append(Sample(sizes[0], sum(sizes), self.step))
            self._over.wait(SECONDS)


def resident(pid: int) -> float:
    """RSS of a process in MB; 0 where it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


def family(pid: int) -> list[int]:
    """A process and all that descend from it, itself first."""
    found = [pid]
    for member in found:  # grows
        try:
            threads = [task / "children" for task in Path(f"/proc/{member}/task").iterdir()]
            found += [int(child) for children in threads for child in children.read_text().split()]
        except OSError:  # gone meanwhile
            continue
    return found


def peak(samples: Iterable[Sample]) -> float:
    """The most that all processes held together."""
    return max((sample.all for sample in samples), default=0.0)


def quarters(samples: Sequence[Sample], steps: int) -> list[list[Sample]]:
    """The samples of each quarter of so many steps."""
    return [[s for s in samples if 4 * s.step // (steps + 1) == part] for part in range(4)]


def slope(samples: Sequence[Sample]) -> float:
    """MB for each thousand updates, of the line that fits best."""
    import numpy as np

    return float(np.polyfit([s.step for s in samples], [s.all for s in samples], 1)[0] * 1000)


def watched(command: Sequence[str], log: Path) -> list[Sample]:
    """Runs a command to its end, whose stderr says at which update it is.

    Raises:
        RuntimeError: it failed.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    with Watch(process.pid) as watch, log.open("w") as file:
        for line in process.stderr:
            file.write(line)
            file.flush()
            if found := STEP.match(line):
                watch.step = int(found[1])
    if process.wait():
        raise RuntimeError(f"{command[2]} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    return watch.samples


def write_corpus(folder: Path, pairs: int, lengths: Callable[[random.Random], int]) -> Path:
    """A corpus of words that nobody knows, written line by line.

    Args:
        folder: made.
        pairs: of train; dev has 60.
        lengths: draws the words of a sentence.
    """
    draw = random.Random(1)
    words = sorted({"".join(draw.choices(SYLLABLES, k=draw.randint(1, 3))) for _ in range(WORDS)})
    draw.shuffle(words)
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))
    folder.mkdir(parents=True)
    for split, count in (("train", pairs), ("dev", 60)):
        with (folder / f"{split}.en").open("w") as source, (folder / f"{split}.de").open("w") as target:
            for _ in range(count):
                line = draw.choices(words, cum_weights=weights, k=lengths(draw))
                source.write(" ".join(line) + "\n")
                target.write(" ".join(reversed(line)) + "\n")
    return folder


def measure_training(folder: Path, steps: int, report: Report) -> bool:
    """Trains so many updates; whether the bound is held."""
    corpus = write_corpus(folder / "mixed", 15_000, lambda draw: round(2 ** draw.uniform(0, 7.2)))
    flags = {
        "problem": "translate_ende",
        "hparams_set": "tiny",
        "hparams": SIZES,
        "data_source": corpus,
        "vocab_size": VOCAB_SIZE,
        "data_dir": folder / "mixed_data",
        "output_dir": folder / "model",
        "train_steps": steps,
        "local_eval_frequency": max(1, steps // 10),
        "save_checkpoints_secs": 10,
        "keep_checkpoint_max": 3,
        "log_step_count_steps": max(1, steps // 200),
        "eval_bleu_sentences": 60,
    }
    samples = watched(command("trainer", flags), folder / "trainer.log")
    seen, buckets = buckets_seen(folder / "mixed_data", steps // 4)
    report(f"training    {seen} of {buckets} buckets of lengths in the first {steps // 4:,} updates")
    return judge_training(samples, steps, report) and seen == buckets


def buckets_seen(data_dir: Path, updates: int) -> tuple[int, int]:
    """How many buckets the first updates of a training have seen, and how many there are."""
    from t2t_revival import registry
    from t2t_revival.data.batching import TrainingBatches, bucket_boundaries

    hparams = registry.hparams("tiny", SIZES)
    batches = TrainingBatches(text_problem().shards("train", data_dir), hparams, seed=1)  # the trainer's
    bounds = bucket_boundaries(hparams.max_length, hparams.min_length_bucket, hparams.length_bucket_step)
    longest = (
        max(side.shape[1] for side in features.values())
        for features, *_ in itertools.islice(batches.dataset(), updates)
    )
    return len({bisect.bisect_left(bounds, length) for length in longest}), len(bounds)


def judge_training(samples: Sequence[Sample], steps: int, report: Report) -> bool:
    """Reports what a training held; whether the bound is held."""
    parts = quarters(samples, steps)
    held = [peak(part) for part in parts]
    growth = held[3] - held[1]
    last = [sample for part in parts[1:] for sample in part if sample.step < steps]  # then it ends
    report(
        f"training    peak {peak(samples):7,.0f} MB, {steps:,} updates; by quarters "
        + ", ".join(f"{most:,.0f}" for most in held)
        + f"; {slope(last):+.1f} MB for each 1,000 updates after the first"
    )
    return bounded("training", growth, TRAINING_BOUND, report)


def measure_generation(folder: Path, pairs: int, report: Report) -> bool:
    """Makes data of a tenth of so many pairs, and of all, which stays; whether the bound is held."""
    peaks = []
    for count in (pairs // 10, pairs):
        corpus = write_corpus(folder / f"corpus-{count}", count, lambda draw: draw.randint(1, 20))
        flags = {
            "problem": "translate_ende",
            "data_source": corpus,
            "vocab_size": VOCAB_SIZE,
            "data_dir": folder / f"data-{count}",
        }
        samples = watched(command("datagen", flags), folder / "datagen.log")
        peaks.append(peak(samples))
        others = max(sample.all - sample.main for sample in samples)
        report(
            f"generation  peak {peaks[-1]:7,.0f} MB, {count:,} pairs; main process "
            f"{max(sample.main for sample in samples):,.0f}, its workers {others:,.0f}"
        )
    return bounded("generation", peaks[1] - peaks[0], GENERATION_BOUND, report)


def measure_reading(data_dir: Path, report: Report) -> bool:
    """Reads an epoch and a half of the batches of `base`; whether the bound is held."""
    from t2t_revival import registry
    from t2t_revival.data.batching import TrainingBatches

    problem = text_problem()
    examples = problem.metadata(data_dir).splits["train"].examples
    batches = TrainingBatches(problem.shards("train", data_dir), registry.hparams("base"), seed=1)
    before = resident(os.getpid())
    began = time.monotonic()
    with Watch(os.getpid()) as watch:
        for number, _ in enumerate(batches.dataset(), 1):
            watch.step = batches.tokens(number).examples
            if watch.step >= 1.5 * examples:
                break
    parts = quarters(watch.samples, watch.step)
    first, later = peak([*parts[0], *parts[1]]), peak([*parts[2], *parts[3]])
    report(
        f"reading     peak {peak(watch.samples):7,.0f} MB, {before:,.0f} before; {watch.step:,} examples in "
        f"{time.monotonic() - began:.0f} s; by halves {first:,.0f}, {later:,.0f}"
    )
    return bounded("reading", later - first, READING_BOUND, report)


def text_problem() -> Text2TextProblem:
    """The problem of all parts."""
    from t2t_revival import registry
    from t2t_revival.problems.problem import Text2TextProblem

    problem = registry.problem("translate_ende")
    assert isinstance(problem, Text2TextProblem)
    return problem


def bounded(part: str, growth: float, bound: float, report: Report) -> bool:
    """Reports whether memory grew by no more than `bound` MB."""
    held = growth <= bound
    report(f"{part:10}  grew by {growth:.0f} MB, may grow by {bound}: {'flat' if held else 'NOT FLAT'}")
    return held


def command(name: str, flags: dict[str, object]) -> list[str]:
    """What runs one of the commands."""
    return [
        sys.executable,
        "-m",
        f"t2t_revival.cli.{name}",
        *(f"--{flag}={value}" for flag, value in flags.items()),
    ]


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="which; reading needs generation")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--work_dir", type=Path, help="a new folder, which is kept; else a temporary one")
    values = parser.parse_args(argv)
    held = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = values.work_dir or Path(temporary)
        folder.mkdir(exist_ok=True)
        if "training" in values.parts:
            held.append(measure_training(folder, values.steps, _print))
        if "generation" in values.parts:
            held.append(measure_generation(folder, values.pairs, _print))
        if "reading" in values.parts:
            held.append(measure_reading(folder / f"data-{values.pairs}", _print))
    return 0 if all(held) else 1


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
