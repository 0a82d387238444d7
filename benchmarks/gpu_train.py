"""How fast a GPU trains the paper's models.

    python benchmarks/gpu_train.py                                   # TensorFlow, where it sees a GPU
    KERAS_BACKEND=jax PYTHONPATH=. python benchmarks/gpu_train.py    # JAX, from a bare checkout

Under JAX it needs jax, keras and what keras needs, and neither TensorFlow nor this project installed.
Batches are random ids. The step is the one that Keras's `fit` makes, without `fit` around it: forward, loss,
gradients, Adam with the paper's schedule. Each model is a process of its own, which measures a large product
of bfloat16 matrices first, then warms up, then takes the time of so many updates, several rounds of them.

Figures are medians over the rounds, with the least and the most. Tokens are target tokens without padding,
positions are those with padding. Model FLOP/s: matrix products, attention and softmax among them, of tokens
without padding, forward and twice that backward (`gpu/flops.py`); their share is of the product of matrices
measured before. Memory is what was in use at the worst moment, the compiler's trials included.

What a GPU may prefer is a flag, and `--try` measures several, each beside the run without it:

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

from gpu.figures import TERA, Measured, Round, table

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
    """In a checkout that is not installed, hparams/ stands beside the package and not in it."""
    if importlib.util.find_spec("t2t_revival") is None:
        sys.path.insert(0, str(ROOT))
    import t2t_revival

    if importlib.util.find_spec("t2t_revival.hparams") is None:
        t2t_revival.__path__.append(str(ROOT))


def measure(size: str, args: argparse.Namespace) -> Measured:
    """Trains one model in this process.

    Raises:
        T2TError: there is no GPU, or a flag does not fit.
    """
    import keras
    from gpu import examples, variations

    from t2t_revival import registry
    from t2t_revival.errors import T2TError
    from t2t_revival.training.compiling import build_model, compile_model

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
    return Measured(
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
    """The module that trains under a backend of Keras.

    Raises:
        T2TError: there is none.
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
    """Target tokens, target positions and floating-point operations of a micro-batch."""
    from gpu.flops import training_flops

    sources, targets = batch.source_lengths, batch.target_lengths
    return int(targets.sum()), batch.targets.size, training_flops(hparams, vocab_size, sources, targets)


def matmul_speed(steps: Any, size: int) -> float:
    """FLOP/s of a product of two [size, size] matrices in bfloat16, median."""
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


def run_all(args: argparse.Namespace, argv: list[str]) -> list[Measured]:
    """Each size, as the flags say and then each variation, in a process of its own; who fails is left out."""
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        for size in args.sizes.split(","):
            for variation in ("", *args.variations):
                changes = [f"--{change}" for change in variation.split(",") if change]
                own = [f"--sizes={size}", f"--result={result}", f"--variation={variation}", *changes]
                command = [sys.executable, __file__, *argv, *own, "--try"]
                if subprocess.run(command, check=False).returncode:
                    say(f"{size} {variation}".strip() + ": left out")
                    continue
                found = json.loads(result.read_text())
                measured.append(Measured(**{**found, "rounds": [Round(**r) for r in found["rounds"]]}))
    return measured


def say(line: str) -> None:
    """Progress, on stderr."""
    print(line, file=sys.stderr, flush=True)


def parse_flags(argv: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--sizes", default="base,big", help="hparams sets, by comma")
    add("--hparams", default="", help='changes to them, as in "attention_dropout=0.1"')
    add("--precision", choices=PRECISIONS, default=PRECISIONS[0])
    add(
        "--tokens",
        type=int,
        default=25_000,
        help="target positions of an update, at most (the paper's 25,000)",
    )
    add("--accumulate", type=int, default=1, help="micro-batches of an update, where memory is short")
    add("--lengths", choices=LENGTHS, default=LENGTHS[0], help="full sentences, or as a corpus has them")
    add("--length", type=int, default=64, help="tokens of a sentence, of the longest where they are mixed")
    add("--vocab", type=int, default=37_000, help="tokens of the vocabulary")
    add("--warmup", type=int, default=5, help="updates before the first round; at least each batch once")
    add("--steps", type=int, default=20, help="updates of a round")
    add("--rounds", type=int, default=5)
    add("--matmul_size", type=int, default=8192, help="rows and columns of the matrices")
    helps = {
        "attention": "JAX: jax.nn's, plain or in cuDNN, instead of the model's own",
        "random": "JAX: dropout's bytes from the bits themselves, or from the hardware's generator",
        "loss": "by float32 logits, instead of linear_cross_entropy",
        "norm": "layer normalisation's gradient derived, instead of written out",
        "donate": "JAX: write a step's results over the state before",
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
        help="runs to measure besides, such as norm=derived",
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
    """Entry point; 1 where nothing could be measured."""
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
