"""All measurements on one GPU, in calls of some minutes each that go on where the last one stopped.

    python benchmarks/gpu_train.py --out=DIR --minutes=9.5 --data_dir=DATA
    python benchmarks/gpu_train.py --out=DIR --show

From a bare checkout; TensorFlow is not needed. Keras's backend is JAX. In this order:

1. `ceiling`: the speed of a large product of bfloat16 matrices.
2. `speed`: the training step of `base` and `big` on random ids, by size of batch: twice as large each time,
   until memory is full or nothing is gained. That of the trainer under JAX, with its Adam and bfloat16, and
   that of a plain PyTorch model (`nn.Transformer`, shared embedding and softmax, autocast, fused Adam), with
   and without `torch.compile`.
3. `compare`: the same steps in turns on one device, each with its best batch that memory has room for, in
   rounds of about two seconds each.
4. `train`: `t2t-trainer` in the time that is left, with data that was generated before. The next call
   resumes it.
5. `score`: BLEU of the newest checkpoint, with --dev_source and --dev_reference.

Each figure is a line of DIR/figures.jsonl as soon as it is known. Pieces that are there are skipped, also
those that failed, but with --retry. Every model runs in its own process.

Figures are medians over rounds, with extremes. Tokens are target tokens without padding. Model FLOP/s count
matrix products (`training_flops`); their share is relative to the product of matrices. Memory is the peak of
what is in use.

Implementations that a GPU may prefer are further contestants, such as ours:random=rbg or
ours:norm=derived+attention=cudnn (`gpu/variations.py`); `tensorflow` is this project's step under TensorFlow.
`XLA_FLAGS` is passed on. For comparison: one A100, `big` in mixed precision, 82,059 tokens/s (NVIDIA
DeepLearningExamples); an H200's product of bfloat16 matrices is near 790 TFLOP/s.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from gpu.checkout import ROOT, make_importable
from gpu.record import Clock, Record, TimeIsUp, say

BENCHMARKS = ROOT / "benchmarks"
PIECES = ("ceiling", "speed", "compare", "train", "score")
LENGTHS = ("constant", "mixed")
VERSIONS = ("jax", "keras", "torch", "tensorflow", "numpy")
LEAST = 20.0  # seconds, with fewer no piece begins
CHOICES = {  # of gpu/variations.py, which imports Keras
    "attention": ("xla", "cudnn"),
    "random": ("bits", "rbg"),
    "loss": ("logits",),
    "norm": ("derived",),
}
TINY: dict[str, Any] = {
    "sizes": "tiny",
    "hparams": "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,attention_dropout=0",
    "vocab": 50,
    "length": 16,
    "tokens": 64,
    "most_tokens": 128,
    "matmul_size": 64,
    "most_steps": 2,
    "rounds": 2,
    "torch_compiler": "aot_eager",
    "hparams_set": "tiny",
    "trainer_hparams": "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,max_length=32,"
    "min_length_bucket=32",
}


def set_environment() -> None:
    """Sets what the processes of contestants and commands read, where it is not set."""
    for name, value in {
        "KERAS_BACKEND": "jax",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # others have to have room beside it
        "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92",
    }.items():
        os.environ.setdefault(name, value)
    paths = [str(BENCHMARKS), str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def set_caches(out: Path) -> None:
    """Keeps what compilers make in the folder, so that the next call, or process, need not make it again."""
    for name, folder in {"JAX_COMPILATION_CACHE_DIR": "jax", "TORCHINDUCTOR_CACHE_DIR": "torch"}.items():
        os.environ.setdefault(name, str((out / "cache" / folder).absolute()))


def ceiling(args: argparse.Namespace, record: Record, clock: Clock) -> None:
    """Measures the product of matrices.

    Raises:
        T2TError: there is no GPU, or JAX does not work.
    """
    from t2t_revival import T2TError

    command = [sys.executable, str(BENCHMARKS / "gpu" / "ceiling.py"), str(args.matmul_size)]
    with clock.limit(args.piece_seconds):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise T2TError(f"JAX: {(done.stderr.strip() or 'no output').splitlines()[-1]}")
    found = json.loads(done.stdout)
    if found["device"] == "CPU" and not args.tiny:
        raise T2TError(f"{found['name']} sees no GPU; --tiny tries the script on a CPU")
    line = record.add("ceiling", **found)
    say(f"{line['device']}, {line['name']}: product of matrices {line['flops'] / 1e12:,.1f} TFLOP/s")


def run_pieces(args: argparse.Namespace, record: Record, clock: Clock) -> None:
    """Measures what is not in the record yet, until the time is up."""
    from gpu import speeds, training

    steps: list[Callable[[], object]] = []
    if "ceiling" in args.pieces and not record.find("ceiling"):
        steps.append(lambda: ceiling(args, record, clock))
    for size in args.sizes:
        model = speeds.Measurement(args, record, clock, size)
        if "speed" in args.pieces:
            steps += [lambda model=model, name=name: model.search(name) for name in args.contestants]
        if "compare" in args.pieces:
            steps.append(lambda model=model: model.compare(args.contestants))
    if args.data_dir and "train" in args.pieces:
        steps.append(lambda: training.train(args, record, clock))
    if args.data_dir and args.dev_source and "score" in args.pieces:
        steps.append(lambda: training.score(args, record, clock))
    for number, step in enumerate(steps):
        if clock.left < LEAST:
            raise TimeIsUp(f"{len(steps) - number} of {len(steps)} pieces are left for the next call")
        step()


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}; --help lists the flags\n")


def parse_flags(argv: list[str] | None = None) -> argparse.Namespace:
    """Parses the flags."""
    parser = Parser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of figures, caches and the training")
    add("--minutes", type=float, default=9.5, help="of this call")
    add("--show", action="store_true", help="print the figures so far, and measure nothing")
    add("--pieces", default=",".join(PIECES), help="by comma")
    add("--retry", action="store_true", help="measure again what has failed")
    add("--tiny", action="store_true", help="a small model, also on a CPU, to try the script")
    add("--sizes", default="big,base", help="hparams sets, by comma")
    add("--hparams", default="", help='overrides, such as "attention_dropout=0.1"')
    add("--contestants", default="ours,torch,torch-compiled", help="by comma")
    add("--lengths", choices=LENGTHS, default=LENGTHS[0], help="full sentences, or lengths as in a corpus")
    add("--length", type=int, default=64, help="tokens of a sentence; of the longest with --lengths=mixed")
    add("--vocab", type=int, default=37_000, help="tokens of the vocabulary")
    add("--tokens", type=int, default=12_500, help="target positions of the first batch")
    add("--most_tokens", type=int, default=200_000, help="of the largest")
    add("--window_seconds", type=float, default=2.0, help="of a round")
    add("--most_steps", type=int, default=100, help="of a round")
    add("--rounds", type=int, default=5)
    add("--piece_seconds", type=float, default=180.0, help="after which a piece has failed")
    add("--matmul_size", type=int, default=8192, help="rows and columns of the matrices")
    add("--torch_compiler", default="inductor", help="backend of torch.compile")
    add("--problem", default="translate_ende", help="of the training")
    add("--hparams_set", default="base", help="of the training")
    add("--data_dir", type=Path, help="data of the training, made by t2t-datagen; without it none begins")
    add("--trainer_hparams", default="", help="overrides of its hparams, when it begins")
    add("--dev_source", type=Path, help="text that the newest checkpoint translates")
    add("--dev_reference", type=Path, help="its translation")
    add("--decode_seconds", type=float, default=75.0, help="kept for that")
    add("trainer_flags", nargs="*", metavar="-- FLAGS", help="further flags of t2t-trainer")
    if "--tiny" in (sys.argv[1:] if argv is None else argv):
        parser.set_defaults(**TINY)
    args = parser.parse_args(argv)
    for name in ("sizes", "contestants", "pieces"):
        setattr(args, name, getattr(args, name).split(","))
    if problem := fault(args):
        parser.error(problem)
    return args


def fault(args: argparse.Namespace) -> str | None:
    """Returns what is wrong with the flags, or `None`."""
    positive = ("minutes", "rounds", "tokens", "window_seconds", "most_steps", "piece_seconds", "length")
    for name in positive:
        if not getattr(args, name) > 0:
            return f"--{name} must be above 0"
    from t2t_revival import T2TError, registry

    try:
        for size in args.sizes:
            registry.hparams(size).override(args.hparams)
    except T2TError as error:
        return str(error)
    for piece in args.pieces:
        if piece not in PIECES:
            return f"--pieces: no piece {piece!r}; known: {', '.join(PIECES)}"
    if args.tokens < args.length:
        return f"--tokens={args.tokens} is less than a sentence of --length={args.length}"
    if bool(args.dev_source) != bool(args.dev_reference):
        return "--dev_source and --dev_reference need each other"
    for name in ("data_dir", "dev_source", "dev_reference"):
        path = getattr(args, name)
        if path and not path.exists():
            return f"--{name}={path} does not exist"
    return next(filter(None, map(contestant_fault, args.contestants)), None)


def contestant_fault(contestant: str) -> str | None:
    """Returns what is wrong with a contestant's name, or `None`."""
    known = ("ours", "torch", "torch-compiled", "tensorflow")
    name, colon, changes = contestant.partition(":")
    if name not in known or (colon and name != "ours"):
        return f"--contestants: no contestant {contestant!r}; known: {', '.join(known)}, ours:NAME=VALUE"
    for change in changes.split("+") if colon else ():
        key, _, value = change.partition("=")
        if value not in CHOICES.get(key, ()):
            all_known = ", ".join(f"{key}={value}" for key, values in CHOICES.items() for value in values)
            return f"--contestants={contestant}: no variation {change!r}; known: {all_known}"
    return None


def available(contestants: list[str]) -> list[str]:
    """Returns those whose library is installed."""
    from gpu.speeds import CONTESTANTS

    found = []
    for contestant in contestants:
        module = CONTESTANTS[contestant.partition(":")[0]].module
        if importlib.util.find_spec(module):
            found.append(contestant)
        else:
            say(f"{contestant}: dropped: {module} is not installed")
    return found


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns 1 after an error."""
    make_importable()
    args = parse_flags(argv)
    clock = Clock(60 * args.minutes)
    from gpu.report import report

    from t2t_revival import T2TError

    set_environment()
    set_caches(args.out)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        common = {"versions": versions(), "at": time.strftime("%Y-%m-%d %H:%M"), "call": sys.argv[1:]}
        record = Record(args.out / "figures.jsonl", **common)
        if args.retry:
            record.forget_failures()
        if not args.show:
            args.contestants = available(args.contestants)
            run_pieces(args, record, clock)
    except TimeIsUp as up:
        say(str(up) or "time is up: the same command goes on from here")
    except (T2TError, OSError) as error:
        say(f"error: {error}")
        return 1
    print(report(record))
    return 0


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the libraries that are installed."""
    installed = {name: metadata.version(name) for name in VERSIONS if importlib.util.find_spec(name)}
    return {"python": platform.python_version(), **installed}


if __name__ == "__main__":
    sys.exit(main())
