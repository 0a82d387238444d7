"""Training speed side by side: this project, plain PyTorch, OpenNMT-tf and Marian, in one interleaved run.

    python benchmarks/train_speed.py --onmt_python=ENV/bin/python --torch_python=ENV/bin/python \\
        --marian_python=ENV/bin/python

Every contestant is a process that trains the same model on the same batches with the same dropout, smoothing,
optimizer and learning rates. They take turns, a window of a few steps each, so that other work on the machine
affects all of them alike. The figure is non-padding target tokens per second of training steps.

OpenNMT-tf 2.32 needs Python 3.10 or older and an environment of its own:
`python3.10 -m venv ENV && ENV/bin/pip install OpenNMT-tf==2.32.0 tensorflow==2.13.1`. Marian is
`pip install pymarian==1.12.42`; it makes its own batches of the same pairs, see peers/marian.py.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import result_file
from peers.batches import Pair, read_ids, synthetic_pairs, token_batches, write_batches
from peers.processes import (
    BUSY_CPUS,
    Answer,
    ContestantError,
    Entry,
    Process,
    Window,
    missing,
    training_command,
    wait_for_quiet,
)

SIZES = {
    "small": {"layers": 4, "hidden_size": 256, "filter_size": 1024, "heads": 4},
    "base": {"layers": 6, "hidden_size": 512, "filter_size": 2048, "heads": 8},
}
SYNTHETIC_PAIRS = 20_000
HELD_OUT_BATCHES = 2


CONTESTANTS = {
    "ours-float32": Entry("ours.py", "python", "t2t_revival", "float32"),
    "ours-bfloat16": Entry("ours.py", "python", "t2t_revival", "bfloat16"),
    "opennmt-float32": Entry("onmt_transformer.py", "onmt_python", "opennmt", "float32"),
    "torch-float32": Entry("torch_transformer.py", "torch_python", "torch", "float32"),
    "torch-bfloat16": Entry("torch_transformer.py", "torch_python", "torch", "bfloat16"),
    "marian": Entry("marian.py", "marian_python", "pymarian", "float32"),
}
RATIOS = {"OpenNMT-tf": "opennmt-float32", "PyTorch bf16": "torch-bfloat16", "Marian": "marian"}


@dataclass
class Result:
    """Measurements of one contestant.

    Attributes:
        name: library and version.
        parameters: trained parameters.
        windows: one entry per round.
        loss: held-out loss after all steps, nats per target token.
        trained_tokens: target tokens of its training.
    """

    name: str
    parameters: int
    windows: list[Window] = field(default_factory=list)
    loss: float = float("nan")
    trained_tokens: int = 0

    @property
    def speeds(self) -> list[float]:
        """Target tokens per second of every window."""
        return [window["target_tokens"] / window["seconds"] for window in self.windows]


def compete(
    processes: dict[str, Process], warmup: int, windows: int, steps: int, loss_steps: int, patience: float
) -> dict[str, Result]:
    """Lets the contestants take turns; one that fails is reported on stderr and dropped.

    Args:
        processes: the contestants, started.
        warmup: steps before the first window.
        windows: number of rounds.
        steps: steps of one window.
        loss_steps: further steps, not timed, before the loss is computed.
        patience: maximum wait for a quiet machine before each window, in seconds.
    """
    results = {
        key: Result(process.description["name"], process.description["parameters"])
        for key, process in processes.items()
    }

    def ask(key: str, question: Callable[[], Answer]) -> Answer | None:
        try:
            return question()
        except ContestantError as error:
            _say(f"{key}: dropped: {error}")
            del results[key]
            return None

    def go(key: str, count: int) -> Window | None:
        window = ask(key, partial(processes[key].window, count))
        if window:
            results[key].trained_tokens += int(window["target_tokens"])
        return window

    for key in list(results):
        go(key, warmup)
    for number in range(windows):
        order = list(results)
        turn = number % max(1, len(order))
        for key in order[turn:] + order[:turn]:
            wait_for_quiet(patience)
            if window := go(key, steps):
                results[key].windows.append(window)
                _say(f"{key}: {results[key].speeds[-1]:,.0f} target tokens/s{_disturbance(window)}")
    for key in list(results):
        if loss_steps and not go(key, loss_steps):
            continue
        if answer := ask(key, partial(processes[key].ask, "loss")):
            results[key].loss = answer["loss"]
    return results


def _disturbance(window: Window) -> str:
    others = window.get("others_cpus", 0.0)
    return f"  (disturbed: others used {others:.2f} CPUs)" if others > BUSY_CPUS else ""


def ratio(result: Result, other: Result | None) -> float | None:
    """Returns the median over the rounds of `result`'s speed divided by `other`'s."""
    if other is None:
        return None
    return median(a / b for a, b in zip(result.speeds, other.speeds, strict=True))


def table(results: dict[str, Result]) -> str:
    """Returns the results of one size in Markdown."""
    heads = (
        "contestant",
        "target tokens/s, median (min-max)",
        *(f"x {name}" for name in RATIOS),
        "peak RSS, MB",
        "held-out loss (after target tokens)",
        "others' CPUs, max",
    )
    rows = [heads, ("---", *["---:"] * (len(heads) - 1))]
    for key, result in results.items():
        speeds = result.speeds
        ratios = (ratio(result, results.get(other)) for other in RATIOS.values())
        others = [window["others_cpus"] for window in result.windows if "others_cpus" in window]
        rows.append(
            (
                f"{key}: {result.name}",
                f"{median(speeds):,.0f} ({min(speeds):,.0f}-{max(speeds):,.0f})",
                *("" if value is None else f"{value:.2f}" for value in ratios),
                f"{max(window['peak_rss_mb'] for window in result.windows):,.0f}",
                f"{result.loss:.3f} ({result.trained_tokens:,})",
                f"{max(others):.2f}" if others else "",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def disturbed(results: Iterable[Result]) -> str | None:
    """Returns a warning if others used the machine during a window, `None` for a quiet run."""
    windows = [window for result in results for window in result.windows]
    count = sum(bool(_disturbance(window)) for window in windows)
    if not count:
        return None
    return (
        f"WARNING: others used more than {BUSY_CPUS} CPUs in {count} of {len(windows)} windows: "
        "the machine was not quiet; ratios are more reliable than speeds. Repeat the run."
    )


def run_size(
    size: str, pythons: dict[str, str], pairs: Sequence[Pair], args: argparse.Namespace
) -> dict[str, Result]:
    """Starts the contestants of one size, lets them compete and stops them."""
    steps = args.warmup + args.windows * args.steps + args.loss_steps
    random = np.random.default_rng(args.seed)
    held_out_pairs = len(pairs) // 50
    train = token_batches(pairs[held_out_pairs:], args.batch_size, random)
    held_out = token_batches(pairs[:held_out_pairs], args.batch_size, random)
    config = {
        **SIZES[size],
        "vocab_size": 1 + max(token for pair in pairs for side in pair for token in side),
        "max_length": args.max_length,
        "dropout": args.dropout,
        "inner_dropout": args.inner_dropout,
        "label_smoothing": args.label_smoothing,
        "learning_rate_constant": args.learning_rate_constant,
        "learning_rate_warmup_steps": args.learning_rate_warmup_steps,
        "seed": args.seed,
        "mini_batch_words": args.mini_batch_words,
    }
    processes: dict[str, Process] = {}
    with tempfile.TemporaryDirectory() as folder:
        config["folder"] = folder
        batches = Path(folder) / "batches.npz"
        write_batches(
            batches, list(itertools.islice(train, steps)), list(itertools.islice(held_out, HELD_OUT_BATCHES))
        )
        try:
            for key, python in pythons.items():
                _say(f"{size}: starting {key}")
                try:
                    log = Path(folder) / f"{key}.log"
                    command = training_command(CONTESTANTS[key], python, config, batches)
                    processes[key] = Process(command, log)
                except ContestantError as error:
                    _say(f"{key}: dropped: {error}")
            return compete(processes, args.warmup, args.windows, args.steps, args.loss_steps, args.wait_quiet)
        finally:
            for process in processes.values():
                process.stop()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _names(known: Iterable[str]) -> Any:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        wrong = [name for name in names if name not in known]
        if wrong:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(wrong)}; known: {', '.join(known)}")
        return names

    return parse


def parse_flags(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--sizes", type=_names(SIZES), default="small,base", help="comma list of: " + ", ".join(SIZES))
    add(
        "--contestants",
        type=_names(CONTESTANTS),
        default=",".join(CONTESTANTS),
        help="comma list; default all",
    )
    add("--python", default=sys.executable, help="interpreter that has t2t_revival")
    add("--torch_python", default=sys.executable, help="interpreter that has PyTorch")
    add("--onmt_python", help="interpreter that has OpenNMT-tf 2.32")
    add("--marian_python", help="interpreter that has pymarian")
    add("--mini_batch_words", default="2048,4096", help="comma list, of which Marian takes the fastest")
    add(
        "--ids_dir",
        type=Path,
        help="folder with train.en and train.de of tokens such as t17; default: synthetic ids",
    )
    add("--windows", type=int, default=5, help="rounds")
    add("--steps", type=int, default=4, help="training steps of one window")
    add("--warmup", type=int, default=3, help="training steps before the first window")
    add("--loss_steps", type=int, default=0, help="further steps, not timed, before the loss")
    add(
        "--wait_quiet",
        type=float,
        default=0,
        help="maximum wait for a quiet machine before each window, in seconds",
    )
    add("--batch_size", type=int, default=4096, help="tokens, padding included, over the longer side")
    add("--max_length", type=int, default=100, help="tokens; longer sentences are skipped")
    add("--dropout", type=float, default=0.1, help="on embedding sums and outputs of sub-layers")
    add(
        "--inner_dropout",
        type=float,
        default=0.0,
        help="on attention weights and in the feed-forward network",
    )
    add("--label_smoothing", type=float, default=0.1)
    add("--learning_rate_constant", type=float, default=0.5, help="factor of the paper's eq. (3)")
    add("--learning_rate_warmup_steps", type=int, default=100)
    add("--seed", type=int, default=1)
    result_file.add_flag(parser)
    return parser.parse_args(argv)


def main() -> int:
    """Runs the comparison; returns 1 without any contestant."""
    args = parse_flags()
    pythons: dict[str, str] = {}
    for key in args.contestants:
        entry = CONTESTANTS[key]
        python = getattr(args, entry.python)
        reason = missing(entry.python, entry.module, python)
        if reason:
            _say(f"{key}: dropped: {reason}")
        else:
            pythons[key] = python
    if not pythons:
        return 1
    try:
        pairs = (
            read_ids(args.ids_dir, args.max_length)
            if args.ids_dir
            else synthetic_pairs(SYNTHETIC_PAIRS, args.max_length, args.seed)
        )
    except (OSError, ValueError) as error:
        _say(f"error: {error}")
        return 1
    report: list[dict[str, Any]] = []
    for size in args.sizes:
        found = run_size(size, pythons, pairs, args)
        report += [
            {"size": size, "contestant": key, **vars(one), "target_tokens_per_second": one.speeds}
            for key, one in found.items()
        ]
        print(f"\n{size}: {SIZES[size]}, batches of {args.batch_size} tokens, {os.cpu_count()} CPUs\n")
        print(table(found))
        print(f"\n{disturbed(found.values()) or 'The machine was quiet.'}", flush=True)
    result_file.write(args.out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
