"""Memory of a training's step on one device for each hparams set, by XLA's estimate: nothing is computed.

    KERAS_BACKEND=jax python benchmarks/step_memory.py [SET ...]

Compiles the step of the longest sentences at full size, by JAX, and prints a row for each set. Where there is
no GPU it is compiled for the CPU, without optimizations, which would take minutes a set; the figures are
upper bounds then, and bfloat16 counts as float32.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # which would leave files, and no time to measure
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import result_file

from t2t_revival import HParams, RunConfig, T2TError, registry
from t2t_revival.data.records import SplitData
from t2t_revival.training.engines.engine import accumulation
from t2t_revival.training.engines.jax_engine import JaxEngine
from t2t_revival.training.model import PRECISIONS
from t2t_revival.training.trainer import TrainingData, new_model


def measure(hparams: HParams, vocab_size: int, precision: str) -> tuple[int, float]:
    """Returns a step's memory in bytes, and the seconds that its compilation took."""
    config = RunConfig(Path(), strategy="default", precision=precision)  # type: ignore[arg-type]
    engine = JaxEngine(config)
    engine.prepare(
        new_model(TrainingData(SplitData([]), vocab_size), hparams, config, accumulation(hparams, 1), 1)
    )
    began = time.perf_counter()
    return engine.step_memory(hparams), time.perf_counter() - began


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", help="hparams sets; by default all")
    parser.add_argument("--hparams", default="", help="changes to each set, such as batch_size=16384")
    parser.add_argument("--vocab_size", type=int, default=37_000)
    parser.add_argument("--precision", default="float32", choices=PRECISIONS)
    result_file.add_flag(parser)
    values = parser.parse_args(argv)
    found = []
    print(f"{'set':30}{'batch':>8}{'GB':>8}{'compiled in':>14}")
    try:
        for name in values.sets or registry.list_hparams():
            hparams = registry.hparams(name, values.hparams)
            memory, seconds = measure(hparams, values.vocab_size, values.precision)
            found.append(
                {"name": name, "batch_size": hparams.batch_size, "gb": memory / 1e9, "compile_s": seconds}
            )
            print(f"{name:30}{hparams.batch_size:8,}{memory / 1e9:8.2f}{seconds:12.0f} s", flush=True)
    except T2TError as error:
        parser.error(str(error))
    result_file.write(values.out, found, precision=values.precision, vocab_size=values.vocab_size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
