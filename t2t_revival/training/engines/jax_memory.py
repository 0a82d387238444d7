"""Memory of a training's step under JAX, by XLA's own estimate: nothing is computed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import jax

from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import HParams
from t2t_revival.training.engines.engine import Build, accumulation
from t2t_revival.utils.sizes import readable_size

if TYPE_CHECKING:
    from t2t_revival.training.engines.jax_engine import JaxEngine

FIRST = 1024  # tokens of a device's part of a batch, from which sizes are doubled
MARGIN = 0.1  # of the memory, for batches made ahead, evaluations and fragments


def step_memory(engine: JaxEngine, hparams: HParams) -> int:
    """Estimates the memory of each device while it computes a step of the longest sentences, in bytes."""
    rows = max(1, hparams.batch_size // hparams.max_length) * engine.replicas
    found = engine.compile_step(rows, hparams.max_length).memory_analysis()
    assert found, "CPUs and GPUs have one"
    kept = found.argument_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes
    return kept + found.temp_size_in_bytes


def device_memory(device: jax.Device) -> int:
    """Returns the memory of a device in bytes; of a CPU, that of the machine."""
    statistics = device.memory_stats() or {}
    return statistics.get("bytes_limit") or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def with_largest_batch(engine: JaxEngine, hparams: HParams, build: Build, memory: int) -> HParams:
    """Returns hparams with the largest `batch_size` that fits, and updates of as many tokens as before.

    Args:
        engine: not started.
        hparams: updates have `effective_batch_size` tokens, or where that is 0 a batch of each device.
        build: makes a compiled model, with so many micro-batches for an update.
        memory: of a device, in bytes.

    Raises:
        T2TError: not even a small batch fits.
    """
    tokens = hparams.effective_batch_size or hparams.batch_size * engine.replicas
    most = -(-tokens // engine.replicas)
    best, size = None, min(max(FIRST, hparams.max_length), most)
    while True:
        tried = hparams.replace(batch_size=size, effective_batch_size=tokens)
        engine.prepare(build(tried, accumulation(tried, engine.replicas)))
        if step_memory(engine, tried) > (1 - MARGIN) * memory:
            break
        best = tried
        if size == most:
            break
        size = min(2 * size, most)
    if best is None:
        raise T2TError(
            f"batch_size=auto: a batch of {size:,} tokens needs more than the {readable_size(memory)} of the "
            "device: try --shard_optimizer, --precision=mixed_bfloat16 or a lower max_length"
        )
    return best.replace(batch_size=-(-most // -(-most // best.batch_size)))  # equal parts of an update
