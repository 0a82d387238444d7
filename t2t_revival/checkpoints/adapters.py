"""Low-rank adapters in checkpoints: a training stores them beside the matrices that they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

A, B = "lora_a.", "lora_b."  # how the names of the two matrices of an adapter begin


def adapter_name(prefix: str, path: str) -> str:
    """The name of an adapter's matrix, `A` or `B`, for the weight of a path without the model's name."""
    return prefix + path.replace("/", ".")


def is_adapter(name: str) -> bool:
    """Returns whether a path, or a name in a checkpoint, is of an adapter's matrix."""
    return A in name or B in name


def weight_path(name: str) -> str:
    """Returns the path, or the name in a checkpoint, of the weight that an adapter's matrix changes.

    Other names are returned as they are.
    """
    prefix = A if A in name else B
    model, found, path = name.partition(prefix)
    return model + path.replace(".", "/") if found else name


def merge_adapters(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Adds each adapter's product to its matrix: W + A B; returns arrays without adapters."""
    merged = {name: array for name, array in arrays.items() if not is_adapter(name)}
    for name in (name for name in arrays if A in name):
        weight = weight_path(name)
        merged[weight] = merged[weight] + arrays[name] @ arrays[name.replace(A, B)]
    return merged
