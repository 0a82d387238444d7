"""Kills a training again and again, and compares how it ends with one that nobody disturbed.

    python benchmarks/kill_and_resume.py --kills=50

`t2t-trainer`, with the making of its data, is started, killed by SIGKILL and started again until it is done.
The moments: any time, while data is made, while a checkpoint is written, and after one is written, when the
model is evaluated. Where a training is done before all kills are, another begins from nothing. Each must end
with the shards, weights, moments, random states, place in the data and dev scores of the undisturbed one, bit
for bit; else the exit status is 1.
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

from t2t_revival.files import temporary_name
from t2t_revival.training import checkpoints
from t2t_revival.training.curve_files import DEV, read_curve

SIZES = "num_hidden_layers=1,hidden_size=32,filter_size=64,num_heads=2,batch_size=512,effective_batch_size=0"
SIZES += ",max_length=32,layer_prepostprocess_dropout=0.1,learning_rate_warmup_steps=50"
CORPUS = {"train": 4000, "dev": 40}  # pairs
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ZAHLEN = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
ANY_TIME, DATA, WRITING, EVALUATING = "any time", "making data", "writing a checkpoint", "evaluating"
LOOK = 0.0005  # seconds between two looks at what a training does
CLOCK = "seconds"  # what differs in each run


@dataclass
class Outcome:
    """How it went: kills by their moment, trainings brought to an end, and what was not as it should be."""

    kills: Counter[str] = field(default_factory=Counter)
    trainings: int = 0
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """One training with its data."""

    corpus: Path
    folder: Path
    steps: int

    @property
    def data(self) -> Path:
        """Its data_dir."""
        return self.folder / "data"

    @property
    def output(self) -> Path:
        """Its output_dir."""
        return self.folder / "model"

    def start(self) -> subprocess.Popen:
        """Begins it, or goes on with it."""
        self.folder.mkdir(parents=True, exist_ok=True)
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
            "eval_bleu_sentences": 10,
        }
        command = [sys.executable, "-m", "t2t_revival.cli.trainer", *(f"--{k}={v}" for k, v in flags.items())]
        log = (self.folder / "log").open("ab")
        return subprocess.Popen(command, stdout=log, stderr=log)

    def check(self, process: subprocess.Popen) -> None:
        """Waits for its end, which must be a good one."""
        if process.wait():
            log = (self.folder / "log").read_text(errors="replace")
            raise RuntimeError(f"t2t-trainer ended with {process.returncode}:\n{log[-3000:]}")

    @property
    def is_done(self) -> bool:
        """Whether its last update is saved and evaluated: `t2t-trainer` refuses to start then."""
        newest = self.checkpoint()
        return newest is not None and newest.step >= self.steps and self.steps in self.scores()

    def finish(self) -> None:
        """Trains to the end, if it is not there."""
        if not self.is_done:
            self.check(self.start())

    def scores(self) -> dict[float, dict[str, float]]:
        """Of the dev split, by step."""
        rows = read_curve(self.output, DEV)
        return {row["step"]: {name: row[name] for name in row if name != CLOCK} for row in rows}

    def checkpoint(self) -> checkpoints.Checkpoint | None:
        """The newest."""
        found = checkpoints.list_checkpoints(self.output)
        return found[-1] if found else None


def write_corpus(folder: Path) -> Path:
    """Digits in two languages, some thousand pairs."""
    draw = random.Random(1)
    folder.mkdir(parents=True)
    for split, pairs in CORPUS.items():
        rows = [draw.choices(range(10), k=draw.randint(1, 9)) for _ in range(pairs)]
        for suffix, words in (("en", NUMBERS), ("de", ZAHLEN)):
            lines = (" ".join(words[digit] for digit in row) for row in rows)
            (folder / f"{split}.{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def moments(place: Place, session: float, draw: random.Random) -> dict[str, Callable[[], bool]]:
    """For each kind of moment, whether it has come; `session`: seconds that an undisturbed training takes."""
    begun, before = time.monotonic(), place.checkpoint()
    delay, pause = draw.uniform(0, session), draw.uniform(0, 0.5)
    later: dict[str, float] = {}

    def after(name: str, event: bool) -> bool:
        """Whether `pause` seconds have gone since the event was first seen."""
        if event:
            later.setdefault(name, time.monotonic())
        return name in later and time.monotonic() - later[name] >= pause

    return {
        ANY_TIME: lambda: time.monotonic() - begun >= delay,
        DATA: lambda: after(DATA, place.data.exists()),
        WRITING: lambda: any(place.output.glob(temporary_name(Path("model.ckpt-*.npz")).name)),
        EVALUATING: lambda: after(EVALUATING, place.checkpoint() != before),
    }


def disturb(place: Place, kind: str, session: float, draw: random.Random) -> bool:
    """Starts the training and kills it at such a moment; False where it ended before one came."""
    has_come = moments(place, session, draw)[kind]
    process = place.start()
    while process.poll() is None:
        if has_come():
            process.kill()
            process.wait()
            return True
        time.sleep(LOOK)
    place.check(process)
    return False


def kinds(place: Place) -> Iterator[str]:
    """The moments in turn; data is made only at first."""
    yield from (DATA, DATA)
    yield from itertools.cycle((WRITING, EVALUATING, ANY_TIME, ANY_TIME))


def differences(one: Place, other: Place) -> list[str]:
    """What of two trainings is not equal to the bit."""
    found = [
        f"shard {path.name}"
        for path in sorted(one.data.glob("*-of-*"))
        if path.read_bytes() != (other.data / path.name).read_bytes()
    ]
    (arrays, meta), (others, others_meta) = (_content(place) for place in (one, other))
    found += [
        name
        for name in sorted({*arrays, *others})
        if name not in arrays
        or name not in others
        or arrays[name].dtype != others[name].dtype
        or arrays[name].tobytes() != others[name].tobytes()
    ]
    if one.scores() != other.scores():
        found.append("dev.csv")
    return found + [name for name in meta if _timeless(meta[name]) != _timeless(others_meta[name])]


def _content(place: Place) -> tuple[dict[str, np.ndarray], dict]:
    checkpoint = place.checkpoint()
    if checkpoint is None:
        raise RuntimeError(f"{place.output}: no checkpoint")
    arrays, meta = checkpoints.load(checkpoint.path)
    return arrays, {name: value for name, value in meta.items() if name != "checksums"}


def _timeless(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: part for name, part in value.items() if name != CLOCK}


def run(folder: Path, kills: int, steps: int, seed: int, report: Callable[[str], None] = print) -> Outcome:
    """Kills so many times; see the top of this file.

    Args:
        folder: where all is written.
        kills: in all.
        steps: updates of a training.
        seed: of the moments.
        report: is told how far it is.
    """
    draw, outcome = random.Random(seed), Outcome()
    corpus = write_corpus(folder / "corpus")
    whole = Place(corpus, folder / "whole", steps)
    begun = time.monotonic()
    whole.finish()
    session = time.monotonic() - begun
    report(f"undisturbed: {steps} steps in {session:.0f} s")
    while outcome.kills.total() < kills:
        place = Place(corpus, folder / f"killed-{outcome.trainings + 1}", steps)
        for kind in kinds(place):
            enough = outcome.kills.total() == kills or place.is_done
            if enough or not disturb(place, kind, session, draw):
                break
            outcome.kills[kind] += 1
            newest = place.checkpoint()
            where = f"step {newest.step}" if newest else "nothing saved"
            report(f"kill {outcome.kills.total()} of {kills}: {kind}, {where}")
        place.finish()
        outcome.trainings += 1
        found = differences(whole, place)
        outcome.differences += [f"training {outcome.trainings}: {name}" for name in found]
        report(f"training {outcome.trainings} is done: {'DIFFERENT' if found else 'equal to the bit'}")
    return outcome


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work_dir", type=Path, help="a new folder, which is kept; else a temporary one")
    values = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = values.work_dir or Path(temporary)
        outcome = run(folder, values.kills, values.steps, values.seed, lambda line: print(line, flush=True))
    by_kind = ", ".join(f"{count} {kind}" for kind, count in sorted(outcome.kills.items()))
    print(
        f"{outcome.kills.total()} kills ({by_kind}) in {outcome.trainings} trainings of {values.steps} steps"
    )
    print("\n".join(outcome.differences) or "all ended with the same bits")
    return 1 if outcome.differences else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
