"""Speed of the training step of `base` and `big` on a GPU, beside a plain PyTorch model's.

    python benchmarks/gpu_train.py [--out=gpu.json]

From a bare checkout, on a machine with JAX, Keras and what of PyTorch and TensorFlow is to be measured.

The step is the trainer's, in bfloat16, on full sentences of random ids. PyTorch's is `nn.Transformer` with
a shared embedding and softmax, autocast and fused Adam, with and without `torch.compile`. All are on the
device at once, each in a process of its own, and take turns. Tokens are target tokens; figures are medians
over windows, with extremes. FLOP/s are those of the model's matrix products, by formula; their share is that
of a product of two large bfloat16 matrices under JAX. Memory is the peak of what a process has in use.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from threading import Timer
from typing import Any, NamedTuple

import numpy as np
import result_file

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
BATCHES, ROUNDS, PRODUCTS = 4, 5, 20
SETTLING = 2  # times a window's seconds are kept for it
GIB, TERA = 2**30, 1e12
HEADS = ["model", "step", "batch", "target tokens/s", "TFLOP/s", "of the product", "peak GiB", "s to compile"]
say = partial(print, file=sys.stderr, flush=True)


class Scale(NamedTuple):
    """Sizes of what is measured: hparams, vocabulary, tokens of a sentence, seconds of a window, matrices."""

    hparams: str
    vocab: int
    length: int
    window: float
    matrix: int


FULL = Scale("", 37_000, 64, 2.0, 8192)
TINY = Scale("num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2", 50, 8, 0.1, 64)


@dataclass
class Measured:
    """One contestant's training of one model; `failed` says why there are no speeds."""

    size: str
    contestant: str
    tokens: int
    name: str = ""
    compiling_seconds: float = 0.0
    steps: int = 1
    flops_of_token: float = 0.0
    speeds: list[float] = field(default_factory=list)  # target tokens/s
    loss: float = 0.0
    peak_memory: int | None = None
    failed: str = ""

    def fail(self, error: ContestantError) -> None:
        """Notes what a contestant printed last."""
        last = str(error).splitlines()[-1]
        self.failed = last.replace("ended with status -9; last output:", "no answer in time")[:200]
        say(f"{self.size} {self.contestant}: {self.failed}")

    def row(self, ceiling: float) -> list[str]:
        """Returns the cells of the table."""
        names = [self.size, self.contestant, f"{self.tokens:,}"]
        if not self.speeds:
            return [*names, self.failed, "", "", "", ""]
        flops = median(self.speeds) * self.flops_of_token
        memory = "" if self.peak_memory is None else f"{self.peak_memory / GIB:.1f}"
        figures = [spread(self.speeds), f"{flops / TERA:,.1f}", f"{flops / ceiling:.1%}"]
        return [*names, *figures, memory, f"{self.compiling_seconds:.0f}"]


def product_speeds(size: int) -> list[float]:
    """Returns the FLOP/s of products of random [size, size] matrices."""
    import jax

    keys = jax.random.split(jax.random.key(1))
    left, right = (jax.random.normal(key, (size, size), "bfloat16") for key in keys)
    multiply = jax.jit(jax.numpy.matmul)
    speeds = []
    for _ in range(1 + ROUNDS):  # the first compiles, and finds the clock slow
        began = time.perf_counter()
        jax.block_until_ready([multiply(left, right) for _ in range(PRODUCTS)])
        speeds.append(PRODUCTS * 2 * size**3 / (time.perf_counter() - began))
    return speeds[1:]


def random_batches(tokens: int, scale: Scale) -> list[Batch]:
    """Returns batches of `tokens` target tokens at most, of full sentences: no padding, one shape."""
    shape = (BATCHES, 2, tokens // scale.length, scale.length)
    ids = np.random.default_rng(1).integers(FIRST_TOKEN, scale.vocab, shape).astype(np.int32)
    ids[..., -1] = 1
    return [Batch(*sides) for sides in ids]


def ask(process: Process, found: Measured, end: float, *commands: str) -> list[dict[str, Any]]:
    """Returns the answers to commands; without one in time the process is killed, and the answer is none."""
    timer = Timer(max(0.0, end - time.monotonic()), process.stop)
    timer.start()
    try:
        return [process.ask(command) for command in commands]
    except ContestantError as error:
        found.fail(error)
        return []
    finally:
        timer.cancel()


def measure(
    contestants: list[str], size: str, tokens: int, scale: Scale, folder: Path, end: float
) -> list[Measured]:
    """Returns the figures of all contestants that train one model on batches of `tokens`, in turns."""
    hparams = registry.hparams(size).override(scale.hparams)
    batches = random_batches(tokens, scale)
    write_batches(folder / "batches.npz", batches, [])
    lengths = [scale.length] * len(batches[0].targets)
    flops_of_token = training_flops(hparams, scale.vocab, lengths, lengths) / batches[0].target_tokens
    sizes = {"vocab_size": scale.vocab, "max_length": scale.length, "seed": 1}
    end_of_compiling = end - SETTLING * len(contestants) * ROUNDS * scale.window
    results, running = [], []
    with ExitStack() as stack:
        for contestant in contestants:
            found = Measured(size, contestant, batches[0].target_tokens, flops_of_token=flops_of_token)
            results.append(found)
            settings = {**settings_of(hparams), **sizes}
            if contestant == "torch-compiled":
                settings["compiler"] = "aot_eager" if scale is TINY else "inductor"
            entry, backend = CONTESTANTS[contestant], "tensorflow" if contestant == "tensorflow" else "jax"
            command = training_command(entry, sys.executable, settings, folder / "batches.npz")
            try:
                process = Process(["env", f"KERAS_BACKEND={backend}", *command], folder / f"{contestant}.log")
            except ContestantError as error:
                found.fail(error)
                continue
            stack.callback(process.stop)
            if answers := ask(process, found, end_of_compiling, "go 1", "go 3"):
                a_step = answers[1]["seconds"] / 3
                found.steps = max(1, round(scale.window / a_step))
                found.compiling_seconds = answers[0]["seconds"] - a_step
                found.name = process.description["name"]
                say(f"{size} {contestant}: compiled in {found.compiling_seconds:.0f} s")
                running.append((process, found))
        for _ in range(ROUNDS):
            for process, found in running:
                if answers := [] if found.failed else ask(process, found, end, "go 2", f"go {found.steps}"):
                    window = answers[1]
                    found.speeds.append(window["target_tokens"] / window["seconds"])
                    found.loss, found.peak_memory = window["training_loss"], window["peak_memory"]
            running = running[1:] + running[:1]
    return results


def spread(values: list[float]) -> str:
    """Returns the median and the extremes."""
    return f"{median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


def parse_flags(argv: list[str] | None) -> argparse.Namespace:
    """Parses the flags."""
    parser = argparse.ArgumentParser(description="Speed of the training step on a GPU, beside PyTorch.")
    add = parser.add_argument
    result_file.add_flag(parser)
    add("--minutes", type=float, default=8.0, help="after which what is not measured counts as failed")
    add("--sizes", default="base,big", help="hparams sets, by comma")
    add("--contestants", default=",".join(CONTESTANTS), help="by comma; those not installed are left out")
    add("--tokens", type=int, default=25_000, help="target tokens of a batch, as the paper's")
    add("--tiny", action="store_true", help="try the script with a tiny model, also without a GPU")
    if "--tiny" in (argv or sys.argv):
        parser.set_defaults(sizes="base", tokens=64)
    args = parser.parse_args(argv)
    if unknown := set(args.contestants.split(",")) - set(CONTESTANTS):
        parser.error(f"--contestants: no contestant {min(unknown)}; known: {', '.join(CONTESTANTS)}")
    return args


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    args = parse_flags(argv)
    end = time.monotonic() + 60 * args.minutes
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the others need room beside it
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    names, scale = args.contestants.split(","), TINY if args.tiny else FULL
    contestants = [name for name in names if importlib.util.find_spec(CONTESTANTS[name].module)]
    try:
        import jax

        device = jax.local_devices()[0]
        if device.platform != "gpu" and not args.tiny:
            raise T2TError("JAX sees no GPU; --tiny tries the script without one")
        speeds = product_speeds(scale.matrix)
        say(f"{device.device_kind}: product of matrices {spread([speed / TERA for speed in speeds])} TFLOP/s")
        measured: list[Measured] = []
        with tempfile.TemporaryDirectory() as folder:
            for size in args.sizes.split(","):
                measured += measure(contestants, size, args.tokens, scale, Path(folder), end)
    except (T2TError, ImportError) as error:
        say(f"error: {error}")
        return 1
    print(f"{device.device_kind}; {'; '.join(dict.fromkeys(found.name for found in measured if found.name))}")
    for row in [HEADS, ["---"] * len(HEADS), *(found.row(median(speeds)) for found in measured)]:
        print(f"| {' | '.join(row)} |")
    about = {"device": device.device_kind, "product_flops_per_second": speeds}
    result_file.write(args.out, [vars(found) for found in measured], **about)
    return 0


if __name__ == "__main__":
    sys.exit(main())
