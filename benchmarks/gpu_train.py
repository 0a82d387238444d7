"""Speed of the training step of `base` and `big` on a GPU, beside a plain PyTorch model's.

    python benchmarks/gpu_train.py [--out=gpu.json]

From a bare checkout, on a machine with JAX, Keras and what of PyTorch and TensorFlow is to be measured.
Most of a call's time is compilation.

The step is the trainer's, in bfloat16, with its Adam, on full sentences of random ids. PyTorch's is
`nn.Transformer` with a shared embedding and softmax, autocast and fused Adam, with and without
`torch.compile`. All are on the device at once, each in a process of its own, and take turns in windows of
some seconds.

Tokens are target tokens; figures are medians over windows, with extremes. FLOP/s are those of the model's
matrix products, by formula, and their share is that of the product of two large bfloat16 matrices under JAX.
Memory is the peak of what the process has in use.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median
from threading import Timer
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a checkout that is not installed

from peers.batches import FIRST_TOKEN, Batch, write_batches  # noqa: E402
from peers.hparams_of import settings_of  # noqa: E402
from peers.processes import ContestantError, Entry, Process, training_command  # noqa: E402

from t2t_revival import T2TError, registry  # noqa: E402
from t2t_revival.reproduction.training_flops import training_flops  # noqa: E402

CONTESTANTS = {
    "jax": Entry("jax_engine.py", "", "jax", "bfloat16"),
    "tensorflow": Entry("ours.py", "", "tensorflow", "bfloat16"),
    "torch": Entry("torch_transformer.py", "", "torch", "bfloat16"),
    "torch-compiled": Entry("torch_transformer.py", "", "torch", "bfloat16"),
}
BATCHES = 4
SETTLING = 2  # times a window's seconds are kept for it
PRODUCTS = 20
WINDOW, TINY_WINDOW = 2.0, 0.1  # seconds
TINY = "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2"
GIB, TERA = 2**30, 1e12
say = partial(print, file=sys.stderr, flush=True)
HEADS = ("model", "step", "target tokens/s", "TFLOP/s", "of the product", "peak GiB", "s to compile")


@dataclass
class Measured:
    """One contestant's training of one model; `failed` says why there are no speeds."""

    size: str
    contestant: str
    tokens: int
    name: str = ""
    parameters: int = 0
    compiling_seconds: float = 0.0
    steps: int = 1
    flops_of_token: float = 0.0
    speeds: list[float] = field(default_factory=list)  # target tokens/s
    loss: float = 0.0
    peak_memory: int | None = None
    failed: str = ""

    def row(self, ceiling: float) -> list[str]:
        """Returns the cells of the table."""
        if not self.speeds:
            return [self.size, self.contestant, self.failed, "", "", "", ""]
        flops = median(self.speeds) * self.flops_of_token
        memory = "" if self.peak_memory is None else f"{self.peak_memory / GIB:.1f}"
        figures = [spread(self.speeds), f"{flops / TERA:,.1f}", f"{flops / ceiling:.1%}"]
        return [self.size, self.contestant, *figures, memory, f"{self.compiling_seconds:.0f}"]


def product_speeds(size: int, rounds: int) -> list[float]:
    """Returns the FLOP/s of products of random [size, size] matrices."""
    import jax

    keys = jax.random.split(jax.random.key(1))
    left, right = (jax.random.normal(key, (size, size), "bfloat16") for key in keys)
    multiply = jax.jit(jax.numpy.matmul)
    speeds = []
    for _ in range(1 + rounds):  # the first compiles, and finds the clock slow
        began = time.perf_counter()
        jax.block_until_ready([multiply(left, right) for _ in range(PRODUCTS)])
        speeds.append(PRODUCTS * 2 * size**3 / (time.perf_counter() - began))
    return speeds[1:]


def random_batches(tokens: int, length: int, vocab: int) -> list[Batch]:
    """Returns batches of `tokens` target tokens at most, of full sentences: no padding, one shape."""
    random = np.random.default_rng(1)
    shape = (BATCHES, 2, tokens // length, length)
    ids = random.integers(FIRST_TOKEN, vocab, shape).astype(np.int32)
    ids[..., -1] = 1
    return [Batch(*sides) for sides in ids]


@contextmanager
def at_most(seconds: float, process: Process) -> Iterator[None]:
    """Kills the process, whose answer then is an error, after some seconds."""
    timer = Timer(max(0.0, seconds), process.stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def measure(args: argparse.Namespace, size: str, tokens: int, folder: Path, end: float) -> list[Measured]:
    """Returns the figures of all contestants that train one model on batches of `tokens`, in turns."""
    hparams = registry.hparams(size).override(TINY if args.tiny else "")
    window = TINY_WINDOW if args.tiny else WINDOW
    end_of_compiling = end - SETTLING * len(args.contestants) * args.rounds * window
    batches = random_batches(tokens, args.length, args.vocab)
    write_batches(folder / "batches.npz", batches, [])
    lengths = [args.length] * len(batches[0].targets)
    flops_of_token = training_flops(hparams, args.vocab, lengths, lengths) / batches[0].target_tokens
    results, running = [], []
    with ExitStack() as stack:
        for contestant in args.contestants:
            found = Measured(size, contestant, batches[0].target_tokens, flops_of_token=flops_of_token)
            results.append(found)
            settings = {
                **settings_of(hparams),
                "vocab_size": args.vocab,
                "max_length": args.length,
                "seed": 1,
            }
            if contestant == "torch-compiled":
                settings["compiler"] = "aot_eager" if args.tiny else "inductor"
            entry, backend = CONTESTANTS[contestant], "tensorflow" if contestant == "tensorflow" else "jax"
            command = training_command(entry, sys.executable, settings, folder / "batches.npz")
            try:
                process = Process(["env", f"KERAS_BACKEND={backend}", *command], folder / f"{contestant}.log")
                stack.callback(process.stop)
                with at_most(end_of_compiling - time.monotonic(), process):
                    warm_up(process, found, window)
            except ContestantError as error:
                found.failed = reason(error)
                say(f"{size} {contestant}: {found.failed}")
                continue
            say(f"{size} {contestant}: compiled in {found.compiling_seconds:.0f} s")
            running.append((process, found))
        for _ in range(args.rounds):
            for process, found in running:
                take_turn(process, found, end)
            running = running[1:] + running[:1]
    return results


def warm_up(process: Process, found: Measured, window_seconds: float) -> None:
    """Compiles, and decides how many steps a window has."""
    first, second = process.ask("go 1"), process.ask("go 3")
    a_step = second["seconds"] / 3
    found.steps = max(1, round(window_seconds / a_step))
    found.compiling_seconds = first["seconds"] - a_step
    found.name, found.parameters = process.description["name"], process.description["parameters"]


def take_turn(process: Process, found: Measured, end: float) -> None:
    """Adds the speed of one window; one that does not end in time is a failure."""
    if found.failed:
        return
    try:
        with at_most(end - time.monotonic(), process):
            process.ask("go 2")
            window = process.ask(f"go {found.steps}")
    except ContestantError as error:
        found.failed = reason(error)
        return
    found.speeds.append(window["target_tokens"] / window["seconds"])
    found.loss, found.peak_memory = window["training_loss"], window["peak_memory"]


def reason(error: ContestantError) -> str:
    """Returns the last line of what a contestant printed."""
    return (
        str(error).splitlines()[-1].replace("ended with status -9; last output:", "no answer in time")[:200]
    )


def spread(values: list[float]) -> str:
    """Returns the median and the extremes."""
    return f"{median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


def machine() -> dict[str, Any]:
    """Returns what the figures were measured with."""
    libraries = ("jax", "keras", "torch", "tensorflow", "numpy")
    git = ["git", "-C", ROOT, "rev-parse", "HEAD"]
    return {
        "command": sys.argv,
        "commit": subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in libraries if importlib.util.find_spec(name)},
    }


def parse_flags(argv: list[str] | None) -> argparse.Namespace:
    """Parses the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, help="file of JSON")
    add("--minutes", type=float, default=8.0, help="after which what is not measured counts as failed")
    add("--sizes", default="base,big", help="hparams sets, by comma")
    add("--contestants", default=",".join(CONTESTANTS), help="by comma; those not installed are left out")
    add("--tokens", default="25000", help="target tokens of a batch, as the paper's; several by comma")
    add("--length", type=int, default=64, help="tokens of a sentence")
    add("--vocab", type=int, default=37_000, help="tokens of the vocabulary")
    add("--rounds", type=int, default=5, help="windows of each contestant")
    add("--tiny", action="store_true", help="try the script with a tiny model, also without a GPU")
    if "--tiny" in (argv or sys.argv):
        parser.set_defaults(sizes="base", vocab=50, length=8, tokens="64")
    args = parser.parse_args(argv)
    args.tokens = [int(tokens) for tokens in args.tokens.split(",")]
    args.contestants = args.contestants.split(",")
    if unknown := set(args.contestants) - set(CONTESTANTS):
        parser.error(f"--contestants: no contestant {min(unknown)}; known: {', '.join(CONTESTANTS)}")
    if min(args.tokens) < args.length:
        parser.error(f"--tokens={min(args.tokens)} is less than a sentence of --length={args.length}")
    return args


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    args = parse_flags(argv)
    end = time.monotonic() + 60 * args.minutes
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the others need room beside it
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    args.contestants = [
        name for name in args.contestants if importlib.util.find_spec(CONTESTANTS[name].module)
    ]
    try:
        import jax

        device = jax.local_devices()[0]
        if device.platform != "gpu" and not args.tiny:
            raise T2TError("JAX sees no GPU; --tiny tries the script without one")
        speeds = product_speeds(64 if args.tiny else 8192, args.rounds)
        say(f"{device.device_kind}: product of matrices {spread([speed / TERA for speed in speeds])} TFLOP/s")
        results = []
        with tempfile.TemporaryDirectory() as folder:
            for size in args.sizes.split(","):
                for tokens in args.tokens:
                    results += measure(args, size, tokens, Path(folder), end)
    except (T2TError, ImportError) as error:
        say(f"error: {error}")
        return 1
    print(
        f"{device.device_kind}; {'; '.join(dict.fromkeys(filter(None, (found.name for found in results))))}"
    )
    for row in [HEADS, ["---"] * len(HEADS), *(found.row(median(speeds)) for found in results)]:
        print(f"| {' | '.join(row)} |")
    if args.out:
        figures = {"machine": {"device": device.device_kind, **machine()}, "product": speeds}
        args.out.write_text(json.dumps({**figures, "results": [vars(found) for found in results]}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
