"""Contestant: this project's training step under JAX, that of its trainer's engine.

It needs KERAS_BACKEND=jax, and no TensorFlow.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jax
import keras
import numpy as np
from batches import PAD, Batch
from contestant import Config, Contestant, serve
from hparams_of import hparams_of
from keras import ops

from t2t_revival import RunConfig
from t2t_revival.training.engines.engine import StepLogs
from t2t_revival.training.engines.jax_engine import JaxEngine
from t2t_revival.training.loss import smoothed_cross_entropy
from t2t_revival.training.model import build_model, compile_model


class Repeated:
    """Batches in the form of `TrainingBatches`, repeated without end."""

    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches

    def elements(self) -> Iterator[Any]:
        """Yields inputs, targets and the weight of each target token."""
        for batch in itertools.cycle(self._batches):
            weights = np.array([[1 / batch.target_tokens]], np.float32)
            yield {"inputs": batch.inputs, "targets": batch.targets, "weights": weights}


def peak_memory() -> int | None:
    """Returns the peak of the GPU memory of this process in bytes, `None` without a GPU."""
    statistics = jax.local_devices()[0].memory_stats()
    return statistics["peak_bytes_in_use"] if statistics else None


def build(config: Config, batches: list[Batch]) -> Contestant:
    random.seed(config.seed)  # what Keras draws its seeds from; `set_random_seed` would import TensorFlow
    hparams = hparams_of(config)
    precision = "float32" if config.precision == "float32" else "mixed_bfloat16"
    model = compile_model(build_model(hparams, config.vocab_size, precision), hparams)
    compiled = Path(tempfile.mkdtemp())
    engine = JaxEngine(RunConfig(compiled, strategy="default", packed=False))
    engine.prepare(model)
    start_step = engine.start(cast(Any, Repeated(batches)))

    def held_out_loss(batch: Batch) -> float:
        engine.synchronize()
        logits = model({"inputs": batch.inputs, "targets": batch.targets}, training=False)
        targets = batch.targets.reshape(-1)  # [tokens]
        losses = smoothed_cross_entropy(ops.reshape(logits, (len(targets), -1)), targets, 0.0)
        return float(ops.sum(losses * (targets != PAD)))

    return Contestant(
        name=f"t2t_revival, Keras {keras.__version__}, JAX {jax.__version__}",
        parameters=model.count_params(),
        step=lambda: Loss(engine, start_step()),
        held_out_loss=held_out_loss,
        peak_memory=peak_memory,
    )


class Loss:
    """The loss of a step, which `float` waits for."""

    def __init__(self, engine: JaxEngine, logs: StepLogs) -> None:
        self._engine, self._logs = engine, logs

    def __float__(self) -> float:
        return float(self._engine.fetch([self._logs])[0].loss)


if __name__ == "__main__":
    serve(build)
