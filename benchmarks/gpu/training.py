"""A training under JAX in the time that a session has left, and the BLEU of its newest checkpoint."""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gpu.checkout import IN_CHECKOUT
from gpu.record import Clock, Line, Record, say
from gpu.speeds import OURS

PAPERS_TOKENS = 25_000  # of an update
BUCKETS = 6  # since the step is compiled for each
STOPPING = 45.0  # seconds for the last checkpoint
LEAST = 30.0  # of training, which begins with compiling
ENDING = 2.0


def train(args: argparse.Namespace, record: Record, clock: Clock) -> None:
    """Trains, or resumes, until the session's end less what the last checkpoint and decoding need.

    With too little time for it, nothing is done.
    """
    output_dir = args.out / "training"
    seconds_left = clock.left - STOPPING - (args.decode_seconds if args.dev_source else 0.0)
    if seconds_left < LEAST:
        say("training: left for the next call, which has more time")
        return
    command = [
        *IN_CHECKOUT,
        "trainer",
        f"--problem={args.problem}",
        f"--hparams_set={args.hparams_set}",
        f"--data_dir={args.data_dir}",
        f"--output_dir={output_dir}",
        f"--precision={'float32' if args.tiny else 'mixed_bfloat16'}",
        f"--num_buckets={BUCKETS}",
        *args.trainer_flags,
    ]
    if not (output_dir / "hparams.json").exists():  # else those of the first call count
        command.append(f"--hparams={hparams(args, record)}")
    status, seconds = run(command, args.out / "training.log", seconds_left, STOPPING)
    rows = {curve: read_curve(output_dir / f"{curve}.csv") for curve in ("train", "dev")}
    last = rows["train"][-1] if rows["train"] else {}
    outcome = {"seconds": seconds, "status": status, "last": last, "dev": rows["dev"]}
    if status not in (0, 128 + 15):
        outcome["failed"] = last_line(args.out / "training.log")
    record.add("train", command=command, **outcome)
    say(f"training: status {status} after {seconds:.0f} s, " + outcome.get("failed", f"{last}"))


def hparams(args: argparse.Namespace, record: Record) -> str:
    """Returns the overrides of a training: the fastest batch up to the paper's update, and those of flags."""
    measured = record.all("speed", size=args.hparams_set, contestant=OURS)
    speeds = {
        line["tokens"]: line["tokens_per_second"]
        for line in measured
        if "failed" not in line and line["tokens"] <= PAPERS_TOKENS
    }
    size = f"batch_size={max(speeds, key=speeds.__getitem__)}" if speeds else ""
    return ",".join(filter(None, [size, args.trainer_hparams]))


def score(args: argparse.Namespace, record: Record, clock: Clock) -> None:
    """Decodes the dev text with the newest checkpoint, and scores it; without one, does nothing."""
    output_dir, decoded = args.out / "training", args.out / "decoded.txt"
    if not any(output_dir.glob("model.ckpt-*.npz")):
        say("score: there is no checkpoint yet")
        return
    decode = [
        *IN_CHECKOUT,
        "decoder",
        f"--problem={args.problem}",
        f"--hparams_set={args.hparams_set}",
        f"--data_dir={args.data_dir}",
        f"--output_dir={output_dir}",
        f"--decode_from_file={args.dev_source}",
        f"--decode_to_file={decoded}",
    ]
    log = args.out / "decoding.log"
    decoded.unlink(missing_ok=True)
    status, seconds = run(decode, log, clock.left - ENDING, 0.0)
    figures: Line = {"seconds": seconds, "command": decode}
    if status:
        figures["failed"] = last_line(log)
    else:
        bleu = [*IN_CHECKOUT, "bleu", f"--translation={decoded}", f"--reference={args.dev_reference}"]
        done = subprocess.run(bleu, capture_output=True, text=True, check=False, timeout=max(1.0, clock.left))
        figures["bleu"] = done.stdout.strip().splitlines()
        rows = read_curve(output_dir / "train.csv")
        figures["last"] = rows[-1] if rows else {}
    record.add("score", **figures)
    say(f"score: {figures.get('failed') or figures.get('bleu')}")


def run(command: Sequence[str], log: Path, seconds: float, stopping: float) -> tuple[int, float]:
    """Runs a command for some seconds, then sends SIGTERM, and SIGKILL after `stopping` seconds.

    Returns:
        Its exit status, negative after a signal, and its seconds.
    """
    began = time.monotonic()
    with log.open("a", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=os.environ)
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, seconds))
            if process.poll() is None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(stopping)
        finally:
            process.kill()
            status = process.wait()
    return status, time.monotonic() - began


def read_curve(path: Path) -> list[Line]:
    """Returns the rows of a curve's file, oldest first, with numbers as such; none without the file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: number(cell) for name, cell in row.items() if cell} for row in csv.DictReader(file)]


def number(cell: str) -> float | str:
    """Returns a cell as a number if it is one."""
    with suppress(ValueError):
        return float(cell)
    return cell


def last_line(log: Path) -> str:
    """Returns the last line of a log."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "no output"
