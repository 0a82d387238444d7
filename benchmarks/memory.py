"""Memory of a long training, of the generation of much data, and of an epoch of reading it: is it bounded?

    python benchmarks/memory.py

- training: `t2t-trainer` on sentences of all lengths, with evaluations and checkpoints. The last quarter of
  the updates may hold little more than the second; the first one, in which every bucket of lengths must
  occur, allocates graphs and caches.
- generation: `t2t-datagen` on a tenth of the pairs, and on all. The corpora are streamed to disk and not part
  of its memory.
- reading: the batches of one and a half epochs; the second half may hold little more than the first.

Memory is the resident set (RSS) from /proc, in MB of 1,000,000 bytes, of a process and its descendants;
shared pages count for each process. If a bound is exceeded, the exit status is 1.
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
    pass

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

SIZES = "num_hidden_layers=1,hidden_size=64,filter_size=128,num_heads=2,batch_size=2048,max_length=256"
SECONDS = 0.1  # between two samples
MB = 1_000_000
TRAINING_BOUND = 60  # MB by which the last quarter of a training may hold more than the second
GENERATION_BOUND = 50  # MB by which ten times the pairs may need more
READING_BOUND = 50  # MB by which the later half of reading may hold more than the first
SYLLABLES = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]
WORDS = 30_000
TRAIN_PAIRS, DEV_PAIRS = 15_000, 60
VOCAB_SIZE = 2000
PARTS = ("training", "generation", "reading")
STEP = re.compile(r"step +(\d+)/")
OnMessage = Callable[[str], None]


@dataclass(frozen=True)
class Sample:
    """Memory of the main process and of all processes at one moment, in MB, and the current update."""

    main: float
    all: float
    step: int


class Watch:
    """Context in which the memory of a process and its descendants is sampled.

    Args:
        pid: of the process.

    Attributes:
        samples: the samples so far.
        step: current update, stored in each sample.
    """

    def __init__(self, pid: int) -> None:
        self.samples: list[Sample] = []
        self.step = 0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.is_set():
            sizes = [resident(pid) for pid in family(self._pid)]
            if any(sizes):
                self.samples.append(Sample(sizes[0], sum(sizes), self.step))
            self._stop.wait(SECONDS)


def resident(pid: int) -> float:
    """Returns the RSS of a process in MB, 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


def family(pid: int) -> list[int]:
    """Returns a process and its descendants, itself first."""
    pids = [pid]
    for member in pids:  # grows
        try:
            threads = [task / "children" for task in Path(f"/proc/{member}/task").iterdir()]
            pids += [int(child) for children in threads for child in children.read_text().split()]
        except OSError:  # it has ended
            continue
    return pids


def peak(samples: Iterable[Sample]) -> float:
    """Returns the maximum of all processes together."""
    return max((sample.all for sample in samples), default=0.0)


def quarters(samples: Sequence[Sample], steps: int) -> list[list[Sample]]:
    """Returns the samples of each quarter of the steps."""
    return [[s for s in samples if 4 * s.step // (steps + 1) == part] for part in range(4)]


def slope(samples: Sequence[Sample]) -> float:
    """Returns the slope of a least-squares line, MB per thousand updates."""
    import numpy as np

    return float(np.polyfit([s.step for s in samples], [s.all for s in samples], 1)[0] * 1000)


def watched(command: Sequence[str], log: Path) -> list[Sample]:
    """Runs a command and samples its memory; the current update is read from its stderr.

    Raises:
        RuntimeError: the command failed.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    with Watch(process.pid) as watch, log.open("w") as file:
        for line in process.stderr:
            file.write(line)
            file.flush()
            if match := STEP.match(line):
                watch.step = int(match[1])
    if process.wait():
        raise RuntimeError(f"{command[2]} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    return watch.samples


def write_corpus(folder: Path, pairs: int, lengths: Callable[[random.Random], int]) -> Path:
    """Writes a corpus of made-up words, line by line.

    Args:
        folder: a new folder.
        pairs: of train; dev has `DEV_PAIRS`.
        lengths: draws the number of words of a sentence.
    """
    draw = random.Random(1)
    words = sorted({"".join(draw.choices(SYLLABLES, k=draw.randint(1, 3))) for _ in range(WORDS)})
    draw.shuffle(words)
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))
    folder.mkdir(parents=True)
    for split, count in (("train", pairs), ("dev", DEV_PAIRS)):
        with (folder / f"{split}.en").open("w") as source, (folder / f"{split}.de").open("w") as target:
            for _ in range(count):
                line = draw.choices(words, cum_weights=weights, k=lengths(draw))
                source.write(" ".join(line) + "\n")
                target.write(" ".join(reversed(line)) + "\n")
    return folder


def measure_training(
    folder: Path, steps: int, on_message: OnMessage, pairs: int = TRAIN_PAIRS, decoded: int = DEV_PAIRS
) -> bool:
    """Trains on so many pairs, and returns whether the bound holds; an evaluation decodes some of dev."""
    corpus = write_corpus(folder / "mixed", pairs, lambda draw: round(2 ** draw.uniform(0, 7.2)))
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
        "eval_bleu_sentences": decoded,
    }
    samples = watched(command("trainer", flags), folder / "trainer.log")
    seen, buckets = buckets_seen(folder / "mixed_data", steps // 4)
    on_message(f"training    {seen} of {buckets} buckets of lengths in the first {steps // 4:,} updates")
    return judge_training(samples, steps, on_message) and seen == buckets


def buckets_seen(data_dir: Path, updates: int) -> tuple[int, int]:
    """Returns the number of buckets in the first updates of a training, and of all buckets."""
    from t2t_revival import registry
    from t2t_revival.data.batching import TrainingBatches, bucket_boundaries
    from t2t_revival.training.engines.tensorflow_engine import batch_dataset

    hparams = registry.hparams("tiny", SIZES)
    data = registry.problem("translate_ende").open(data_dir)
    batches = TrainingBatches(data.split("train"), hparams, seed=1)  # the trainer's
    bounds = bucket_boundaries(hparams.max_length, hparams.min_length_bucket, hparams.length_bucket_step)
    longest = (
        max(side.shape[1] for side in features.values())
        for features, *_ in itertools.islice(batch_dataset(batches), updates)
    )
    return len({bisect.bisect_left(bounds, length) for length in longest}), len(bounds)


def judge_training(samples: Sequence[Sample], steps: int, on_message: OnMessage) -> bool:
    """Reports the memory of a training, and returns whether the bound holds."""
    parts = quarters(samples, steps)
    peaks = [peak(part) for part in parts]
    growth = peaks[3] - peaks[1]
    last = [
        sample for part in parts[1:] for sample in part if sample.step < steps
    ]  # after the last step it shuts down
    on_message(
        f"training    peak {peak(samples):7,.0f} MB, {steps:,} updates; by quarters "
        + ", ".join(f"{most:,.0f}" for most in peaks)
        + f"; {slope(last):+.1f} MB for each 1,000 updates after the first"
    )
    return bounded("training", growth, TRAINING_BOUND, on_message)


def measure_generation(folder: Path, pairs: int, on_message: OnMessage) -> bool:
    """Generates data of a tenth of the pairs and of all, and returns whether the bound holds."""
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
        on_message(
            f"generation  peak {peaks[-1]:7,.0f} MB, {count:,} pairs; main process "
            f"{max(sample.main for sample in samples):,.0f}, its workers {others:,.0f}"
        )
    return bounded("generation", peaks[1] - peaks[0], GENERATION_BOUND, on_message)


def measure_reading(data_dir: Path, on_message: OnMessage) -> bool:
    """Reads one and a half epochs of batches of `base`, and returns whether the bound holds."""
    from t2t_revival import registry
    from t2t_revival.data.batching import TrainingBatches
    from t2t_revival.training.engines.tensorflow_engine import batch_dataset

    data = registry.problem("translate_ende").open(data_dir)
    examples = data.metadata.splits["train"].examples
    batches = TrainingBatches(data.split("train"), registry.hparams("base"), seed=1)
    before = resident(os.getpid())
    began = time.monotonic()
    with Watch(os.getpid()) as watch:
        for number, _ in enumerate(batch_dataset(batches), 1):
            watch.step = batches.tokens(number).examples
            if watch.step >= 1.5 * examples:
                break
    parts = quarters(watch.samples, watch.step)
    first, later = peak([*parts[0], *parts[1]]), peak([*parts[2], *parts[3]])
    on_message(
        f"reading     peak {peak(watch.samples):7,.0f} MB, {before:,.0f} before; {watch.step:,} examples in "
        f"{time.monotonic() - began:.0f} s; by halves {first:,.0f}, {later:,.0f}"
    )
    return bounded("reading", later - first, READING_BOUND, on_message)


def bounded(part: str, growth: float, bound: float, on_message: OnMessage) -> bool:
    """Reports and returns whether memory grew by at most `bound` MB."""
    flat = growth <= bound
    on_message(f"{part:10}  grew by {growth:.0f} MB, may grow by {bound}: {'flat' if flat else 'NOT FLAT'}")
    return flat


def command(name: str, flags: dict[str, object]) -> list[str]:
    """Returns the command line of one of the project's commands."""
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
    parser.add_argument(
        "--parts", default=",".join(PARTS), help="comma list of parts; reading needs generation"
    )
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--train_pairs", type=int, default=TRAIN_PAIRS, help="of the training")
    parser.add_argument("--decoded", type=int, default=DEV_PAIRS, help="dev sentences of an evaluation")
    parser.add_argument("--pairs", type=int, default=2_000_000, help="of the generation")
    parser.add_argument("--work_dir", type=Path, help="a new folder to keep; default: a temporary one")
    values = parser.parse_args(argv)
    flat = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = values.work_dir or Path(temporary)
        folder.mkdir(exist_ok=True)
        if "training" in values.parts:
            flat.append(measure_training(folder, values.steps, _print, values.train_pairs, values.decoded))
        if "generation" in values.parts:
            flat.append(measure_generation(folder, values.pairs, _print))
        if "reading" in values.parts:
            flat.append(measure_reading(folder / f"data-{values.pairs}", _print))
    return 0 if all(flat) else 1


def _print(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
