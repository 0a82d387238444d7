"""Prints the speed of products of large bfloat16 matrices under JAX as JSON; `gpu_train.py` runs it."""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp

PRODUCTS, ROUNDS = 20, 5


def matmul_speeds(size: int) -> list[float]:
    """Returns the FLOP/s of products of random [size, size] matrices in bfloat16, in each round."""
    keys = jax.random.split(jax.random.key(1))
    left, right = (jax.random.normal(key, (size, size), jnp.bfloat16) for key in keys)
    product = jax.jit(jnp.matmul)
    last: Any = jax.block_until_ready(product(left, right))
    speeds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(PRODUCTS):
            last = product(left, right)
        jax.block_until_ready(last)
        speeds.append(PRODUCTS * 2 * size**3 / (time.perf_counter() - began))
    return speeds


if __name__ == "__main__":
    device = jax.local_devices()[0]
    speeds = matmul_speeds(int(sys.argv[1]))
    limit = (device.memory_stats() or {}).get("bytes_limit")
    print(
        json.dumps(
            {
                "device": device.device_kind if device.platform == "gpu" else "CPU",
                "name": f"JAX {jax.__version__}",
                "memory": limit,
                "speeds": speeds,
                "flops": median(speeds),
            }
        )
    )
