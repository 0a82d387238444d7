"""Memory of a long training, and of the generation of much data: is it bounded?

    python benchmarks/memory.py

- training: `t2t-trainer` on sentences of all lengths, with evaluations and checkpoints. The last quarter of
  the updates may hold little more than the second; the first one allocates graphs and caches.
- generation: `t2t-datagen` on a tenth of the pairs, and on all, which it reads from disk.

Memory is the resident set (RSS) from /proc, in MB of 1,000,000 bytes, of a process and its descendants;
shared pages count for each process. If a bound is exceeded, the exit status is 1.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import result_file

Sample = tuple[int, int, int]  # current update; MB of the main process, and of its descendants together
SECONDS = 0.1  # between two samples
STEP = re.compile(r"^step +(\d+)/", re.MULTILINE)
BOUNDS = {"training": 60, "generation": 50}  # MB of growth
SYLLABLES = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]
WORDS, TRAIN_PAIRS, DEV_PAIRS = 30_000, 15_000, 60  # evaluations decode all of dev
SIZES = "num_hidden_layers=1,hidden_size=64,filter_size=128,num_heads=2,batch_size=2048,max_length=256"


def resident(pid: int) -> list[int]:
    """Returns the RSS in bytes of a process and of its descendants, its own first."""
    pids, sizes = [pid], []
    for member in pids:  # grows
        folder = Path(f"/proc/{member}")
        with suppress(OSError, IndexError):  # it has ended
            sizes.append(int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
            pids += map(int, " ".join(file.read_text() for file in folder.glob("task/*/children")).split())
    return sizes


def watched(command: Sequence[str], log: Path) -> list[Sample]:
    """Runs a command and samples its memory; its stderr, in `log`, tells the current update."""
    samples = []
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
    while process.poll() is None:
        main, *others = resident(process.pid)
        step = int(["0", *STEP.findall(log.read_text(errors="replace"))][-1])
        samples.append((step, round(main / 1e6), round(sum(others) / 1e6)))
        time.sleep(SECONDS)
    if process.returncode:
        raise RuntimeError(f"{command[2]} ended with {process.returncode}:\n{log.read_text()[-3000:]}")
    return samples


def run(name: str, corpus: Path, **flags: object) -> list[Sample]:
    """Runs one of the project's commands on a corpus and samples its memory."""
    flags |= {"vocab_size": 2000, "data_source": corpus, "data_dir": f"{corpus}_data"}
    command = [sys.executable, "-m", f"t2t_revival.cli.{name}", "--problem=translate_ende"]
    return watched([*command, *(f"--{flag}={flags[flag]}" for flag in flags)], Path(f"{corpus}.log"))


def write_corpus(folder: Path, pairs: int, length: Callable[[random.Random], int]) -> Path:
    """Writes pairs of made-up words for train, and some for dev; `length` draws the words of a sentence."""
    draw = random.Random(1)
    words = sorted({"".join(draw.choices(SYLLABLES, k=draw.randint(1, 3))) for _ in range(WORDS)})
    draw.shuffle(words)
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))
    folder.mkdir()
    for split, count in (("train", pairs), ("dev", DEV_PAIRS)):
        with (folder / f"{split}.en").open("w") as source, (folder / f"{split}.de").open("w") as target:
            for _ in range(count):
                line = draw.choices(words, cum_weights=weights, k=length(draw))
                source.write(" ".join(line) + "\n")
                target.write(" ".join(reversed(line)) + "\n")
    return folder


def train(folder: Path, steps: int) -> list[list[Sample]]:
    """Trains with ten evaluations, and returns the samples of each quarter of the steps."""
    corpus = write_corpus(folder / "mixed", TRAIN_PAIRS, lambda draw: round(2 ** draw.uniform(0, 7.2)))
    flags = {"hparams_set": "tiny", "hparams": SIZES, "output_dir": folder / "model", "train_steps": steps}
    flags |= {"local_eval_frequency": max(1, steps // 10), "log_step_count_steps": max(1, steps // 200)}
    flags |= {"save_checkpoints_secs": 10, "keep_checkpoint_max": 3, "eval_bleu_sentences": DEV_PAIRS}
    return quarters(run("trainer", corpus, **flags), steps)


def quarters(samples: Sequence[Sample], steps: int) -> list[list[Sample]]:
    """Returns the samples of each quarter of the steps."""
    return [[sample for sample in samples if 4 * sample[0] // (steps + 1) == part] for part in range(4)]


def generate(folder: Path, pairs: int) -> list[Sample]:
    """Generates data of so many pairs, and returns the samples."""
    return run("datagen", write_corpus(folder / str(pairs), pairs, lambda draw: draw.randint(1, 20)))


def judged(part: str, groups: Sequence[Sequence[Sample]], before: int) -> dict[str, Any]:
    """Prints and returns the peaks of groups of samples, and the growth from `groups[before]` to the last."""
    peaks = {
        "peaks_mb": [max(main + others for _, main, others in group) for group in groups],
        "main_process_mb": [max(main for _, main, _ in group) for group in groups],
        "its_descendants_mb": [max(others for *_, others in group) for group in groups],
    }
    growth = peaks["peaks_mb"][-1] - peaks["peaks_mb"][before]
    figures = {"name": part, **peaks, "growth_mb": growth, "bound_mb": BOUNDS[part]}
    print(", ".join(f"{name} {value}" for name, value in figures.items()), flush=True)
    return figures


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000, help="of the training; 0 leaves it out")
    parser.add_argument("--pairs", type=int, default=2_000_000, help="of the generation; 0 leaves it out")
    result_file.add_flag(parser)
    args = parser.parse_args(argv)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        if args.steps:
            found.append(judged("training", train(Path(folder), args.steps), 1))
        if args.pairs:
            groups = [generate(Path(folder), pairs) for pairs in (args.pairs // 10, args.pairs)]
            found.append(judged("generation", groups, 0))
    result_file.write(args.out, found)
    return 0 if all(figures["growth_mb"] <= figures["bound_mb"] for figures in found) else 1


if __name__ == "__main__":
    sys.exit(main())
