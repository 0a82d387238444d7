"""Kills a training repeatedly, and compares its result with an undisturbed one.

    python benchmarks/kill_and_resume.py --kills=50

`t2t-trainer`, which also generates the data, is started, killed by SIGKILL and started again until it is
complete. It is killed at any time, while it generates data, while it writes a checkpoint, and after that,
while it evaluates. When a training completes before all kills are made, a new one begins. Each must end with
the shards, weights, moments, random states, data position, dev scores and best checkpoints of the undisturbed
one, bit for bit; otherwise the exit status is 1.
"""

from __future__ import annotations

import argparse
import itertools
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import fingerprint
from t2t_revival.checkpoints.selection import list_best
from t2t_revival.curve_files import DEV, read_curve
from t2t_revival.utils.files import temporary_name

SIZES = "num_hidden_layers=1,hidden_size=32,filter_size=64,num_heads=2,batch_size=512,effective_batch_size=0"
SIZES += ",max_length=32,layer_prepostprocess_dropout=0.1,learning_rate_warmup_steps=50"
CORPUS = {"train": 4000, "dev": 40}  # pairs
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ZAHLEN = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
ANY_TIME, DATA, WRITING, EVALUATING = "any time", "making data", "writing a checkpoint", "evaluating"
POLL_SECONDS = 0.0005
CLOCK = "seconds"  # the only value that may differ


@dataclass
class Outcome:
    """Number of kills by moment, number of completed trainings, and differences from the undisturbed one."""

    kills: Counter[str] = field(default_factory=Counter)
    trainings: int = 0
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Training:
    """A training and its data.

    Attributes:
        corpus: the data source.
        folder: holds data_dir and output_dir.
        steps: number of updates.
        decoded_sentences: dev sentences that an evaluation decodes.
    """

    corpus: Path
    folder: Path
    steps: int
    decoded_sentences: int = 10

    @property
    def data(self) -> Path:
        """The data_dir."""
        return self.folder / "data"

    @property
    def output(self) -> Path:
        """The output_dir."""
        return self.folder / "model"

    @property
    def flags(self) -> list[str]:
        """The flags of `t2t-trainer`."""
        flags = {
            "problem": "translate_ende",
            "hparams_set": "tiny",
            "hparams": SIZES,
            "data_source": self.corpus,
            "vocab_size": 300,
            "data_dir": self.data,
            "output_dir": self.output,
            "train_steps": self.steps,
            "local_eval_frequency": 20,
            "save_checkpoints_secs": 1,
            "keep_best": 2,
            "eval_bleu_sentences": self.decoded_sentences,
        }
        return [f"--{name}={value}" for name, value in flags.items()]

    def start(self) -> subprocess.Popen:
        """Starts or resumes the training."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "t2t_revival.cli.trainer", *self.flags]
        log = (self.folder / "log").open("ab")
        return subprocess.Popen(command, stdout=log, stderr=log)

    def check(self, process: subprocess.Popen) -> None:
        """Waits for the end of the process.

        Raises:
            RuntimeError: its exit status is not 0.
        """
        if process.wait():
            log = (self.folder / "log").read_text(errors="replace")
            raise RuntimeError(f"t2t-trainer ended with {process.returncode}:\n{log[-3000:]}")

    @property
    def is_done(self) -> bool:
        """True if the last update is saved and evaluated; `t2t-trainer` refuses to start then."""
        newest = self.checkpoint()
        return newest is not None and newest.step >= self.steps and self.steps in self.scores()

    def finish(self) -> None:
        """Resumes the training, unless it is complete."""
        if not self.is_done:
            self.check(self.start())

    def scores(self) -> dict[float, dict[str, float]]:
        """Returns the scores of the dev split, by step."""
        rows = read_curve(self.output, DEV)
        return {row["step"]: {name: row[name] for name in row if name != CLOCK} for row in rows}

    def best(self) -> list[tuple[int, str]]:
        """Returns steps and fingerprints of the weights of the best checkpoints, best first."""
        return [(kept.step, fingerprint(kept.path)) for kept in list_best(self.output)]

    def checkpoint(self) -> checkpoints.Checkpoint | None:
        """Returns the newest checkpoint."""
        saved = checkpoints.list_checkpoints(self.output)
        return saved[-1] if saved else None


def write_corpus(folder: Path) -> Path:
    """Writes a corpus of digits in two languages."""
    draw = random.Random(1)
    folder.mkdir(parents=True)
    for split, pairs in CORPUS.items():
        rows = [draw.choices(range(10), k=draw.randint(1, 9)) for _ in range(pairs)]
        for suffix, words in (("en", NUMBERS), ("de", ZAHLEN)):
            lines = (" ".join(words[digit] for digit in row) for row in rows)
            (folder / f"{split}.{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def moments(training: Training, session: float, draw: random.Random) -> dict[str, Callable[[], bool]]:
    """Returns a test for each kind of moment.

    Args:
        training: to be killed.
        session: duration of an undisturbed training, in seconds.
        draw: random numbers.
    """
    begun, before = time.monotonic(), training.checkpoint()
    delay, pause = draw.uniform(0, session), draw.uniform(0, 0.5)
    first_seen: dict[str, float] = {}

    def after(name: str, event: bool) -> bool:
        """Returns whether `pause` seconds have passed since the event was first seen."""
        if event:
            first_seen.setdefault(name, time.monotonic())
        return name in first_seen and time.monotonic() - first_seen[name] >= pause

    return {
        ANY_TIME: lambda: time.monotonic() - begun >= delay,
        DATA: lambda: after(DATA, training.data.exists()),
        WRITING: lambda: any(training.output.glob(temporary_name(Path("model.ckpt-*.npz")).name)),
        EVALUATING: lambda: after(EVALUATING, training.checkpoint() != before),
    }


def disturb(training: Training, kind: str, session: float, draw: random.Random) -> bool:
    """Starts the training and kills it at a moment; returns False if it ended before."""
    has_come = moments(training, session, draw)[kind]
    process = training.start()
    while process.poll() is None:
        if has_come():
            process.kill()
            process.wait()
            return True
        time.sleep(POLL_SECONDS)
    training.check(process)
    return False


def kinds(training: Training) -> Iterator[str]:
    """Yields kinds of moments; data is only generated in the first session."""
    yield DATA
    yield from itertools.cycle((WRITING, EVALUATING, ANY_TIME, ANY_TIME))


def differences(one: Training, other: Training) -> list[str]:
    """Lists everything that is not bit for bit equal in two trainings."""
    names = [
        f"shard {path.name}"
        for path in sorted(one.data.glob("*-of-*"))
        if path.read_bytes() != (other.data / path.name).read_bytes()
    ]
    (arrays, meta), (others, others_meta) = (_content(training) for training in (one, other))
    names += [
        name
        for name in sorted({*arrays, *others})
        if name not in arrays
        or name not in others
        or arrays[name].dtype != others[name].dtype
        or arrays[name].tobytes() != others[name].tobytes()
    ]
    if one.scores() != other.scores():
        names.append("dev.csv")
    if one.best() != other.best():
        names.append("best")
    return names + [name for name in meta if _without_clock(meta[name]) != _without_clock(others_meta[name])]


def _content(training: Training) -> tuple[dict[str, np.ndarray], dict]:
    checkpoint = training.checkpoint()
    if checkpoint is None:
        raise RuntimeError(f"{training.output}: no checkpoint")
    arrays, meta = checkpoints.load(checkpoint.path)
    return arrays, {name: value for name, value in meta.items() if name != "checksums"}


def _without_clock(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: part for name, part in value.items() if name != CLOCK}


def run(
    folder: Path,
    kills: int,
    steps: int,
    seed: int,
    on_message: Callable[[str], None] = print,
    decoded_sentences: int = 10,
) -> Outcome:
    """Trains undisturbed, then with so many kills; see the top of this file.

    Args:
        folder: for all files.
        kills: number of kills.
        steps: updates of a training.
        seed: of the moments.
        on_message: called with each line of progress.
        decoded_sentences: dev sentences that an evaluation decodes.
    """
    draw, outcome = random.Random(seed), Outcome()
    corpus = write_corpus(folder / "corpus")
    undisturbed = Training(corpus, folder / "undisturbed", steps, decoded_sentences)
    begun = time.monotonic()
    undisturbed.finish()
    session = time.monotonic() - begun
    on_message(f"undisturbed: {steps} steps in {session:.0f} s")
    while outcome.kills.total() < kills:
        number = outcome.trainings + 1
        training = Training(corpus, folder / f"killed-{number}", steps, decoded_sentences)
        for kind in kinds(training):
            complete = outcome.kills.total() == kills or training.is_done
            if complete or not disturb(training, kind, session, draw):
                break
            outcome.kills[kind] += 1
            newest = training.checkpoint()
            where = f"step {newest.step}" if newest else "nothing saved"
            on_message(f"kill {outcome.kills.total()} of {kills}: {kind}, {where}")
        training.finish()
        outcome.trainings += 1
        found = differences(undisturbed, training)
        outcome.differences += [f"training {outcome.trainings}: {name}" for name in found]
        on_message(
            f"training {outcome.trainings} is complete: {'DIFFERENT' if found else 'bit for bit equal'}"
        )
    return outcome


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work_dir", type=Path, help="a new folder to keep; default: a temporary one")
    values = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = values.work_dir or Path(temporary)
        outcome = run(folder, values.kills, values.steps, values.seed, lambda line: print(line, flush=True))
    by_kind = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.kills.items()))
    print(
        f"{outcome.kills.total()} kills ({by_kind}) in {outcome.trainings} trainings of {values.steps} steps"
    )
    print("\n".join(outcome.differences) or "all ended bit for bit equal")
    return 1 if outcome.differences else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
