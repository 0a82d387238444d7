"""Low-rank adapters: what training adds to matrices that stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from keras import ops

from t2t_revival.checkpoints.adapters import A, B, adapter_name
from t2t_revival.model.products import Matrix

ADAPTED = ("query_key_value", "query", "key_value", "output", "kernel_1", "kernel_2")


class AdaptedMatrix(Matrix):
    """A matrix W and its adapter: W + A B, of which A and B alone are trained.

    Args:
        weight: [channels, outputs].
        a: [channels, rank], random at first.
        b: [rank, outputs], zeros at first, so that training starts with W.

    Reference: Hu et al., 2022, "LoRA: Low-Rank Adaptation of Large Language Models", with alpha = rank.
    """

    def __init__(self, weight: Any, a: Any, b: Any) -> None:
        self.weight, self.a, self.b = weight, a, b

    def multiply(self, rows: Any) -> Any:
        weight, a, b = (ops.cast(matrix, rows.dtype) for matrix in (self.weight, self.a, self.b))
        return ops.matmul(rows, weight) + ops.matmul(ops.matmul(rows, a), b)

    def take(self, ids: Any) -> Any:
        return ops.take(self.weight, ids, axis=0) + ops.matmul(ops.take(self.a, ids, axis=0), self.b)

    def transpose(self) -> Any:
        return ops.transpose(self.weight + ops.matmul(self.a, self.b))


def add_adapters(model: Any, rank: int) -> list[tuple[Any, AdaptedMatrix]]:
    """Adds an adapter for each matrix of attention and feed-forward networks to a model that is being built.

    Returns each matrix with its adapter; none if `rank` is 0.
    """
    weights = [weight for weight in model.weights if weight.name in ADAPTED] if rank else []
    pairs = []
    for weight in weights:
        channels, outputs = weight.shape
        path = weight.path.partition("/")[2]
        a = model.add_weight(name=adapter_name(A, path), shape=(channels, rank), initializer="he_uniform")
        b = model.add_weight(name=adapter_name(B, path), shape=(rank, outputs), initializer="zeros")
        pairs.append((weight, AdaptedMatrix(weight, a, b)))
    return pairs


@contextmanager
def merged(adapters: list[tuple[Any, AdaptedMatrix]]) -> Iterator[None]:
    """Adds adapters to their matrices within the block, for whoever reads the matrices alone."""
    own = [(variable, variable.numpy()) for weight, adapter in adapters for variable in (weight, adapter.b)]
    for weight, adapter in adapters:
        weight.assign_add(ops.matmul(adapter.a, adapter.b))
        adapter.b.assign(ops.zeros_like(adapter.b))
    try:
        yield
    finally:
        for variable, values in own:
            variable.assign(values)
