"""Speeds of training steps: of each contestant by size of batch, and of all in turns."""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from gpu import examples
from gpu.checkout import IN_CHECKOUT
from gpu.record import Clock, Line, Record, TimeIsUp, say
from peers.batches import Batch, write_batches
from peers.processes import ContestantError, Entry, Process, training_command

from t2t_revival import HParams, registry
from t2t_revival.reproduction.training_flops import training_flops

Start: TypeAlias = Callable[[str, int], Process]  # of a contestant and the tokens of its batches
OURS = "ours"
CONTESTANTS = {
    OURS: Entry("jax_engine.py", "python", "jax", "bfloat16"),
    "torch": Entry("torch_transformer.py", "python", "torch", "bfloat16"),
    "torch-compiled": Entry("torch_transformer.py", "python", "torch", "bfloat16"),
    "tensorflow": Entry("ours.py", "python", "tensorflow", "bfloat16"),
}
COMPILED = "torch-compiled"
IN_TURNS = (OURS, "torch", COMPILED)
GAIN = 1.01  # of a batch twice as large, without which the largest is found
NEARLY = 0.98  # of the best speed, which a smaller batch may have
SETTLING = 2  # steps before a window, after memory was released
GIB, BYTES_OF_PARAMETER = 2**30, 16  # weight, gradient and two moments
OUTPUT = "last output"  # begins what a process that ended has printed
USABLE = 0.9  # of the device's memory


@dataclass(frozen=True)
class Measurement:
    """One model's training on random ids.

    Args:
        args: the flags.
        record: of the figures.
        clock: of the session.
        size: hparams set.
    """

    args: argparse.Namespace
    record: Record
    clock: Clock
    size: str

    @property
    def hparams(self) -> HParams:
        """Hyperparameters of the model."""
        return registry.hparams(self.size).override(self.args.hparams)

    def search(self, contestant: str) -> None:
        """Measures batches, each twice as large as the one before, until memory is full or nothing is gained.

        Raises:
            TimeIsUp: the session is over.
        """
        args, best = self.args, 0.0
        wanted = {"size": self.size, "contestant": contestant}
        tokens = args.tokens
        with self._processes() as start:
            process: Process | None = None
            while tokens <= args.most_tokens:
                line = self.record.find("speed", **wanted, tokens=tokens)
                if line is None:
                    try:
                        with self.clock.limit(args.piece_seconds):
                            if process is None:
                                process = start(contestant, tokens)
                            else:
                                process.ask(f"read {self._batches_file(process.log.parent, tokens)}")
                            figures = self._measure(process, tokens)
                    except (ContestantError, TimeIsUp) as error:
                        if self.clock.left <= 0:
                            raise TimeIsUp from None
                        figures = {"failed": short(error)}
                    line = self.record.add("speed", **wanted, tokens=tokens, **figures)
                    say(f"{self.size} {contestant} {tokens:,} tokens: {outcome(line)}")
                if "failed" in line or line["tokens_per_second"] < GAIN * best:
                    return
                best, tokens = line["tokens_per_second"], 2 * tokens

    def compare(self, contestants: list[str]) -> None:
        """Measures this project and PyTorch in turns, each with its best batch that memory has room for.

        Others are left out: their libraries keep the memory that they once used.

        Raises:
            TimeIsUp: the session is over.
        """
        if self.record.find("compare", size=self.size):
            return
        tokens = self._tokens_beside([name for name in contestants if name in IN_TURNS])
        if OURS not in tokens or len(tokens) < 2:
            say(f"{self.size}: there is nothing to compare")
            return
        try:
            with self.clock.limit(self.args.piece_seconds), self._processes() as start:
                figures = self._take_turns(start, tokens)
        except (ContestantError, TimeIsUp) as error:
            if self.clock.left <= 0:
                raise TimeIsUp from None
            figures = {"failed": short(error)}
        line = self.record.add("compare", size=self.size, **figures)
        say(f"{self.size}: " + (line.get("failed") or f"{line['ratio']:.2f} times {line['better']}"))

    def _take_turns(self, start: Start, tokens: dict[str, int]) -> Line:
        args = self.args
        processes: dict[str, Process] = {}
        steps: dict[str, int] = {}
        speeds: dict[str, list[float]] = {contestant: [] for contestant in tokens}
        for contestant, number in tokens.items():
            processes[contestant] = start(contestant, number)
            steps[contestant], _ = self._warm_up(processes[contestant], number)
            processes[contestant].ask("release")
        for turn in range(args.rounds):
            order = list(tokens)
            first = turn % len(order)
            for contestant in order[first:] + order[:first]:
                process = processes[contestant]
                process.ask(f"go {SETTLING}")
                window = process.ask(f"go {steps[contestant]}")
                process.ask("release")
                speeds[contestant].append(window["target_tokens"] / window["seconds"])
        others = [contestant for contestant in tokens if contestant != OURS]
        better = max(others, key=lambda contestant: median(speeds[contestant]))
        ratios = [ours / other for ours, other in zip(speeds[OURS], speeds[better], strict=True)]
        return {
            "tokens": tokens,
            "speeds": speeds,
            "better": better,
            "ratios": ratios,
            "ratio": median(ratios),
            "device": processes[OURS].description["device"],
            "names": {name: process.description["name"] for name, process in processes.items()},
        }

    def _measure(self, process: Process, tokens: int) -> Line:
        """Returns the figures of a process that has these batches."""
        args = self.args
        steps, compiling = self._warm_up(process, tokens)
        windows = [process.ask(f"go {steps}") for _ in range(args.rounds)]
        batches = self._batches(tokens)
        flops_of_token = sum(self._flops(batch) for batch in batches) / sum(b.target_tokens for b in batches)
        speeds = [window["target_tokens"] / window["seconds"] for window in windows]
        ceiling = self.record.find("ceiling")
        flops = flops_of_token * median(speeds)
        return {
            **{name: process.description[name] for name in ("name", "parameters", "device", "memory")},
            "steps": steps,
            "speeds": speeds,
            "tokens_per_second": median(speeds),
            "flops": flops,
            "share": flops / ceiling["flops"] if ceiling and "flops" in ceiling else None,
            "peak_memory": windows[-1]["peak_memory"],
            "compiling": compiling,
            "loss": windows[-1]["training_loss"],
        }

    def _warm_up(self, process: Process, tokens: int) -> tuple[int, float]:
        """Compiles; returns the steps of a window, and the seconds that compilation took."""
        batches = self._batches(tokens)
        cycle = len(batches) if self.args.lengths == "mixed" else 1  # every shape is compiled, and measured
        first = process.ask(f"go {cycle}")
        second = process.ask(f"go {max(SETTLING, cycle)}")
        a_step = second["seconds"] / max(SETTLING, cycle)
        steps = max(1, min(self.args.most_steps, round(self.args.window_seconds / a_step)))
        return math.ceil(steps / cycle) * cycle, first["seconds"] - cycle * a_step

    def _tokens_beside(self, contestants: list[str]) -> dict[str, int]:
        """Returns the batch of each contestant, so that all processes have room on the device.

        This project's is the smallest that is nearly the fastest; the others' the fastest.
        """
        measured = {
            contestant: [
                line
                for line in self.record.all("speed", size=self.size, contestant=contestant)
                if "failed" not in line
            ]
            for contestant in contestants
        }
        measured = {contestant: lines for contestant, lines in measured.items() if lines}
        if OURS not in measured:
            return {}
        fast = NEARLY * max(line["tokens_per_second"] for line in measured[OURS])
        own = next(line for line in measured[OURS] if line["tokens_per_second"] >= fast)
        tokens = {OURS: own["tokens"]}
        room = math.inf
        memory = [line["memory"] for lines in measured.values() for line in lines if line["memory"]]
        if memory:
            idle = BYTES_OF_PARAMETER * own["parameters"] + GIB
            room = USABLE * max(memory) - own["peak_memory"] - idle * (len(measured) - 1)
        for contestant, lines in measured.items():
            fitting = [line for line in lines if (line["peak_memory"] or 0) <= room]
            if contestant != OURS and fitting:
                tokens[contestant] = max(fitting, key=lambda line: line["tokens_per_second"])["tokens"]
        return tokens

    def _flops(self, batch: Batch) -> float:
        lengths = ((ids != 0).sum(axis=1) for ids in batch)
        return training_flops(self.hparams, self.args.vocab, *lengths)

    def _batches(self, tokens: int) -> list[Batch]:
        make = examples.constant if self.args.lengths == "constant" else examples.mixed
        return make(tokens, self.args.length, self.args.vocab)

    def _batches_file(self, folder: Path, tokens: int) -> Path:
        path = folder / f"{tokens}.npz"
        write_batches(path, self._batches(tokens), [])
        return path

    @contextmanager
    def _processes(self) -> Iterator[Start]:
        """Gives a function that starts a contestant's process; all are stopped at the end."""
        processes: list[Process] = []
        with tempfile.TemporaryDirectory() as folder:

            def start(contestant: str, tokens: int) -> Process:
                entry, config = CONTESTANTS[contestant.split(":")[0]], self._config(contestant)
                batches = self._batches_file(Path(folder), tokens)
                _, *command = training_command(entry, "", config, batches)
                processes.append(Process([*IN_CHECKOUT, *command], Path(folder) / f"{len(processes)}.log"))
                return processes[-1]

            try:
                yield start
            finally:
                for process in processes:
                    process.stop()

    def _config(self, contestant: str) -> dict[str, Any]:
        """Returns the fields of a contestant's `Config`, but its precision."""
        hparams = self.hparams
        return {
            "layers": hparams.num_hidden_layers,
            "hidden_size": hparams.hidden_size,
            "filter_size": hparams.filter_size,
            "heads": hparams.num_heads,
            "vocab_size": self.args.vocab,
            "max_length": self.args.length,
            "dropout": hparams.layer_prepostprocess_dropout,
            "inner_dropout": hparams.attention_dropout,
            "label_smoothing": hparams.label_smoothing,
            "learning_rate_constant": hparams.learning_rate_constant,
            "learning_rate_warmup_steps": hparams.learning_rate_warmup_steps,
            "seed": 1,
            "compiler": self.args.torch_compiler if contestant == COMPILED else "",
            "variation": variation(contestant),
        }


def variation(contestant: str) -> dict[str, str]:
    """Returns {"random": "rbg"} for "ours:random=rbg"."""
    changes = contestant.partition(":")[2]
    return dict(change.split("=", 1) for change in changes.split("+")) if changes else {}


def short(error: Exception) -> str:
    """Returns the first line of an error, at most 300 characters; of a process that ended, its last line."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    return (lines[-1] if OUTPUT in lines[0] else lines[0])[:300]


def outcome(line: Line) -> str:
    """Returns a line of progress."""
    if "failed" in line:
        return f"failed: {line['failed']}"
    share = "" if line["share"] is None else f", {line['share']:.1%} of the product"
    return f"{line['tokens_per_second']:,.0f} target tokens/s{share}"
