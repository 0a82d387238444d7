"""Run by test_jax_memory.py under JAX: prints JSON of what steps take, and of the batches that fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax

from t2t_revival import HParams, RunConfig, T2TError, registry
from t2t_revival.data.records import SplitData
from t2t_revival.training.engines import jax_engine
from t2t_revival.training.engines.engine import accumulation
from t2t_revival.training.engines.jax_engine import JaxEngine, device_memory
from t2t_revival.training.model import TrainingTransformer
from t2t_revival.training.trainer import TrainingData, new_model

CONFIG = RunConfig(Path("out"))
SMALL = registry.hparams("tiny", "hidden_size=16,filter_size=32,num_hidden_layers=1,max_length=32")


def build(hparams: HParams, accumulate: int) -> TrainingTransformer:
    return new_model(TrainingData(SplitData([]), 500), hparams, CONFIG, accumulate, 1)


def memory(engine: JaxEngine, batch_size: int, tokens: int) -> int:
    """Memory of a step of updates of `tokens` in batches."""
    hparams = SMALL.replace(batch_size=batch_size, effective_batch_size=tokens)
    engine.prepare(build(hparams, accumulation(hparams, 1)))
    return engine.step_memory(hparams)


def chosen(engine: JaxEngine, tokens: int, available: int) -> Any:
    """The chosen sizes, or what is said instead."""
    hparams = SMALL.replace(batch_size=tokens, effective_batch_size=0)
    try:
        jax_engine.device_memory = lambda _: available
        found = engine.largest_batch(hparams, build)
    except T2TError as error:
        return str(error)
    return found.batch_size, found.effective_batch_size, accumulation(found, 1)


def full_size(engine: JaxEngine, name: str) -> int:
    """Memory of the step of an hparams set."""
    hparams = registry.hparams(name)
    model = new_model(TrainingData(SplitData([]), 37_000), hparams, CONFIG, accumulation(hparams, 1), 1)
    engine.prepare(model)
    return engine.step_memory(hparams)


if __name__ == "__main__":
    engine = JaxEngine(CONFIG)
    tokens = 6000
    needed = {size: memory(engine, size, tokens) for size in (1024, 2048, 4096, 6000)}
    fits = {size: chosen(engine, tokens, int(used / 0.9) + 1000) for size, used in needed.items()}
    machine = device_memory(jax.devices()[0])
    answer = {
        "needed": needed,
        "fits": fits,
        "too small": chosen(engine, tokens, needed[1024]),
        "plenty": chosen(engine, tokens, machine),
        "machine": machine,
        "big": full_size(engine, "big"),
    }
    print(json.dumps(answer))
