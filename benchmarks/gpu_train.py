"""Training speed of the paper's models on a GPU.

    python benchmarks/gpu_train.py                                   # TensorFlow, where it sees a GPU
    KERAS_BACKEND=jax PYTHONPATH=. python benchmarks/gpu_train.py    # JAX, from a bare checkout

Under JAX it needs jax, keras and keras's dependencies; neither TensorFlow nor this project need be installed.
Batches are random ids. The step is Keras's training step without `fit`: forward, loss, gradients, Adam with
the paper's schedule. Each model runs in its own process: a large product of bfloat16 matrices, a warm-up,
then several timed rounds of updates.

Figures are medians over the rounds, with extremes. Tokens are target tokens without padding, positions
include padding. Model FLOP/s count matrix products, attention and softmax included, of tokens without
padding, forward and twice that backward (`training_flops`); their share is relative to the product of
matrices. Memory is the peak in use, with the compiler's trials.

Implementations that a GPU may prefer are flags, and `--try` measures several beside the run without them:

    ... benchmarks/gpu_train.py --sizes=big --try norm=derived random=rbg random=rbg,attention=cudnn

`XLA_FLAGS` is passed on. For comparison: one A100, `big` in mixed precision, 82,059 tokens/s (NVIDIA
DeepLearningExamples); an H200's product of bfloat16 matrices is near 790 TFLOP/s.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from gpu.figures import TERA, ModelSpeed, Round, table

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow" if importlib.util.find_spec("tensorflow") else "jax")

ROOT = Path(__file__).resolve().parents[1]
CHOICES = {
    "attention": ("ours", "xla", "cudnn"),
    "random": ("ours", "bits", "rbg"),
    "loss": ("ours", "logits"),
    "norm": ("ours", "derived"),
    "donate": ("yes", "no"),
    "xla": ("yes", "no"),
}
PRECISIONS = ("mixed_bfloat16", "float32")
LENGTHS = ("constant", "mixed")
PRODUCTS, PRODUCT_ROUNDS = 20, 5


def make_importable() -> None:
    """Makes hparams/ importable in a checkout that is not installed, where it is beside the package."""
    if importlib.util.find_spec("t2t_revival") is None:
        sys.path.insert(0, str(ROOT))
    import t2t_revival

    if importlib.util.find_spec("t2t_revival.hparams") is None:
        t2t_revival.__path__.append(str(ROOT))


def measure(size: str, args: argparse.Namespace) -> ModelSpeed:
    """Trains one model in this process.

    Raises:
        T2TError: there is no GPU, or a flag does not fit.
    """
    import keras
    from gpu import examples, variations

    from t2t_revival import registry
    from t2t_revival.errors import T2TError
    from t2t_revival.training.compile import build_model, compile_model

    steps = backend(keras.backend.backend())
    device = steps.accelerator()
    if device is None and not args.allow_cpu:
        raise T2TError(
            f"{steps.versions()} sees no GPU: set KERAS_BACKEND to tensorflow or jax, whichever sees one, or "
            "give --allow_cpu to try the script with --sizes=tiny"
        )
    hparams = registry.hparams(size).override(args.hparams)
    make = examples.constant if args.lengths == "constant" else examples.mixed
    batches = make(args.tokens // args.accumulate, args.length, args.vocab)
    variations.choose({name: getattr(args, name) for name in variations.CHOICES})
    matmul = matmul_speed(steps, args.matmul_size)
    say(f"{size}: {steps.versions()}, {device or 'CPU'}, product of matrices {matmul / TERA:,.1f} TFLOP/s")
    random.seed(1)  # what Keras draws its seeds from; `set_random_seed` would import TensorFlow
    model = build_model(hparams, args.vocab, args.precision)
    compile_model(model, hparams, args.accumulate, args.xla == "yes")
    training = steps.Steps(model, batches, args.donate == "yes")
    began = time.perf_counter()
    for _ in range(max(args.warmup * args.accumulate, len(batches))):  # each shape is compiled
        training.step()
    training.loss()
    compiling = time.perf_counter() - began
    say(f"{size}: compiled and warmed up in {compiling:.0f} s")
    counts = [count(batch, hparams, args.vocab) for batch in batches]
    rounds, done = [], max(args.warmup * args.accumulate, len(batches))
    for _ in range(args.rounds):
        micro_batches = [counts[(done + n) % len(counts)] for n in range(args.steps * args.accumulate)]
        done += len(micro_batches)
        began = time.perf_counter()
        for _ in micro_batches:
            training.step()
        training.loss()
        seconds = time.perf_counter() - began
        rounds.append(Round(seconds, *(sum(numbers) for numbers in zip(*micro_batches, strict=True))))
        say(f"{size}: {rounds[-1].tokens / seconds:,.0f} target tokens/s")
    return ModelSpeed(
        size=size,
        variation=args.variation,
        device=device or "CPU",
        versions=steps.versions(),
        parameters=model.count_params(),
        updates=args.steps,
        matmul=matmul,
        compiling=compiling,
        loss=training.loss(),
        peak_memory=steps.peak_memory(),
        rounds=rounds,
    )


def backend(name: str) -> Any:
    """Returns the module with the training steps for a Keras backend.

    Raises:
        T2TError: there is no such module.
    """
    from t2t_revival.errors import T2TError

    if name == "jax":
        from gpu import jax_steps

        return jax_steps
    if name == "tensorflow":
        from gpu import tensorflow_steps

        return tensorflow_steps
    raise T2TError(f"KERAS_BACKEND={name} is not one of tensorflow, jax")


def count(batch: Any, hparams: Any, vocab_size: int) -> tuple[int, int, int]:
    """Returns target tokens, target positions and FLOPs of a micro-batch."""
    from t2t_revival.reproduction.training_flops import training_flops

    sources, targets = batch.source_lengths, batch.target_lengths
    return int(targets.sum()), batch.targets.size, training_flops(hparams, vocab_size, sources, targets)


def matmul_speed(steps: Any, size: int) -> float:
    """Returns the median FLOP/s of products of [size, size] matrices in bfloat16."""
    multiply, wait = steps.matmul(size)
    wait(multiply())
    speeds = []
    for _ in range(PRODUCT_ROUNDS):
        began = time.perf_counter()
        for _ in range(PRODUCTS):
            last = multiply()
        wait(last)
        speeds.append(PRODUCTS * 2 * size**3 / (time.perf_counter() - began))
    return median(speeds)


def run_all(args: argparse.Namespace, argv: list[str]) -> list[ModelSpeed]:
    """Measures each size and variation in its own process; one that fails is skipped."""
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        for size in args.sizes.split(","):
            for variation in ("", *args.variations):
                changes = [f"--{change}" for change in variation.split(",") if change]
                own = [f"--sizes={size}", f"--result={result}", f"--variation={variation}", *changes]
                command = [sys.executable, __file__, *argv, *own, "--try"]
                if subprocess.run(command, check=False).returncode:
                    say(f"{size} {variation}".strip() + ": failed, skipped")
                    continue
                found = json.loads(result.read_text())
                measured.append(ModelSpeed(**{**found, "rounds": [Round(**r) for r in found["rounds"]]}))
    return measured


def say(line: str) -> None:
    """Prints a line of progress to stderr."""
    print(line, file=sys.stderr, flush=True)


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """Parses the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--sizes", default="base,big", help="hparams sets, by comma")
    add("--hparams", default="", help='overrides, such as "attention_dropout=0.1"')
    add("--precision", choices=PRECISIONS, default=PRECISIONS[0])
    add(
        "--tokens",
        type=int,
        default=25_000,
        help="target positions of an update, at most (the paper's 25,000)",
    )
    add("--accumulate", type=int, default=1, help="micro-batches of an update, to save memory")
    add("--lengths", choices=LENGTHS, default=LENGTHS[0], help="full sentences, or lengths as in a corpus")
    add("--length", type=int, default=64, help="tokens of a sentence; of the longest with --lengths=mixed")
    add("--vocab", type=int, default=37_000, help="tokens of the vocabulary")
    add("--warmup", type=int, default=5, help="updates before the first round; at least each batch once")
    add("--steps", type=int, default=20, help="updates of a round")
    add("--rounds", type=int, default=5)
    add("--matmul_size", type=int, default=8192, help="rows and columns of the matrices")
    helps = {
        "attention": "JAX: jax.nn's, plain or in cuDNN, instead of the model's own",
        "random": "JAX: dropout's bytes from the bits themselves, or from the hardware's generator",
        "loss": "by float32 logits, instead of linear_cross_entropy",
        "norm": "layer normalisation's gradient by automatic differentiation",
        "donate": "JAX: overwrite the previous state in each step",
        "xla": "TensorFlow: let XLA compile the step (JAX always does)",
    }
    for name, values in CHOICES.items():
        add(f"--{name}", choices=values, default=values[0], help=helps[name])
    add(
        "--try",
        dest="variations",
        nargs="*",
        default=[],
        metavar="FLAG=VALUE[,...]",
        help="further runs, such as norm=derived",
    )
    add("--json", type=Path, help="file for every round's figures")
    add("--allow_cpu", action="store_true", help="run without a GPU, to try the script")
    add("--result", type=Path, help=argparse.SUPPRESS)  # of a process that measures one model
    add("--variation", default="", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    for name in ("accumulate", "steps", "rounds"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    for change in ",".join(args.variations).split(",") if args.variations else []:
        name, _, value = change.partition("=")
        if value not in CHOICES.get(name, ()):
            known = ", ".join(f"{name}={value}" for name in CHOICES for value in CHOICES[name])
            parser.error(f"--try {change}: known: {known}")
    return args


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns 1 without any measurement."""
    argv = sys.argv[1:] if argv is None else argv
    args = parse_flags(argv)
    make_importable()
    from t2t_revival.errors import T2TError

    try:
        if args.result:
            args.result.write_text(json.dumps(dataclasses.asdict(measure(args.sizes, args))))
            return 0
        measured = run_all(args, argv)
    except (T2TError, OSError) as error:
        say(f"error: {error}")
        return 1
    if not measured:
        return 1
    first = measured[0]
    print(f"{first.versions}, {first.device}, {args.precision}, {args.lengths} lengths of {args.length}\n")
    print(table(measured))
    if args.json:
        flags = {name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()}
        report = {"flags": flags, "runs": [dataclasses.asdict(m) | {"share": m.share} for m in measured]}
        args.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
