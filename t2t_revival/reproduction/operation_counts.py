"""Operations of a graph, counted from the shapes of its nodes.

TensorFlow's profiler skips the bodies of loops. Here a body counts once per iteration, and only nodes that
the outputs depend on are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any, NamedTuple

import tensorflow as tf

LOOPS = ("While", "StatelessWhile")
CALLS = ("PartitionedCall", "StatefulPartitionedCall")
BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")


class Cost(NamedTuple):
    """Cost of one execution of a graph.

    Attributes:
        operations: multiplications and additions of matrix products and convolutions; element-wise
            operations (softmax, activations, norms) are not counted.
        sequential: iterations of the longest loop, 1 without loops.
    """

    operations: int
    sequential: int


def count(function: Any) -> Cost:
    """Counts the operations of a `tf.function`'s concrete function, whose shapes are known.

    Raises:
        ValueError: a shape or a number of iterations is unknown, or the graph has branches.
    """
    return _count(function.graph)


def _count(graph: Any) -> Cost:
    operations, sequential = 0, 1
    for node in _ancestors(graph.outputs):
        if node.type in BRANCHES:
            raise ValueError(f"{node.name}: operations of a branch cannot be counted")
        if node.type in LOOPS:
            body, iterations = _count(_graph_of(node, "body")), _iterations(node)
        elif node.type in CALLS:
            body, iterations = _count(_graph_of(node, "f")), 1
        else:
            operations += 2 * _multiplications(node)
            continue
        operations += iterations * body.operations
        sequential = max(sequential, iterations * body.sequential)
    return Cost(operations, sequential)


def _ancestors(outputs: Iterable[Any]) -> Iterator[Any]:
    """Yields the nodes that the outputs depend on, each once."""
    waiting = [output.op for output in outputs]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        before = {tensor.op for tensor in node.inputs} - seen
        seen |= before
        waiting += before


def _graph_of(node: Any, attribute: str) -> Any:
    return node.graph._get_function(node.get_attr(attribute).name).graph


def _iterations(loop: Any) -> int:
    """Returns the `maximum_iterations` of a loop, the second input of its node."""
    try:
        with tf.compat.v1.Session(graph=loop.graph) as session:
            iterations = int(session.run(loop.inputs[1]))
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(f"{loop.name}: the number of iterations depends on the graph's inputs") from error
    if iterations < 0:
        raise ValueError(f"{loop.name}: the number of iterations is unknown")
    return iterations


def _multiplications(node: Any) -> int:
    formula = FORMULAS.get(node.type)
    return formula(node) if formula else 0


def _matmul(node: Any) -> int:
    """Counts a product; one with a single column is a sum, as in layer normalisation, and not counted."""
    left, (rows, columns) = _shape(node.inputs[0]), _shape(node.outputs[0])
    inner = left[0] if node.get_attr("transpose_a") else left[1]
    return rows * inner * columns if columns > 1 else 0


def _batch_matmul(node: Any) -> int:
    left = _shape(node.inputs[0])
    return prod(_shape(node.outputs[0])) * (left[-2] if node.get_attr("adj_x") else left[-1])


def _einsum(node: Any) -> int:
    """Counts one multiplication for each combination of indices."""
    letters = node.get_attr("equation").decode().split("->")[0].split(",")
    shapes = map(_shape, node.inputs)
    sizes = {
        letter: size
        for term, shape in zip(letters, shapes, strict=True)
        for letter, size in zip(term, shape, strict=True)
    }
    return prod(sizes.values()) if len(letters) > 1 else 0


def _convolution(node: Any) -> int:
    """Counts the kernel [height, width, channels in, channels out] at each output position."""
    return prod(_shape(node.outputs[0])[:-1]) * prod(_shape(node.inputs[1]))


def _shape(tensor: Any) -> tuple[int, ...]:
    if not tensor.shape.is_fully_defined():
        raise ValueError(f"{tensor.name}: the shape {tensor.shape} is not fully known")
    return tuple(tensor.shape)


FORMULAS: dict[str, Callable[[Any], int]] = {
    "MatMul": _matmul,
    "BatchMatMul": _batch_matmul,
    "BatchMatMulV2": _batch_matmul,
    "BatchMatMulV3": _batch_matmul,
    "Einsum": _einsum,
    "Conv2D": _convolution,
    "DepthwiseConv2dNative": _convolution,  # its kernel is [height, width, channels, outputs of a channel]
}
