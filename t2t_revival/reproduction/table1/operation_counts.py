"""Operations of a graph, counted from the shapes of its nodes.

TensorFlow's own profiler counts the nodes of a graph, and a loop's body not at all. Here a body counts as
often as the loop runs, and only what the outputs need is counted.
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
    """What one run of a graph takes.

    Attributes:
        operations: multiplications and additions of its matrix products and convolutions; what works on one
            element at a time (softmax, activations, norms) is not counted.
        sequential: rounds of its longest loop, each of which needs the one before; 1 without loops.
    """

    operations: int
    sequential: int


def count(function: Any) -> Cost:
    """Counts the operations of a `tf.function`'s concrete function, whose shapes are known.

    Raises:
        ValueError: a shape or how often a loop runs is not known, or the graph branches.
    """
    return _count(function.graph)


def _count(graph: Any) -> Cost:
    operations, sequential = 0, 1
    for node in _needed(graph.outputs):
        if node.type in BRANCHES:
            raise ValueError(f"{node.name}: which branch is taken is not known")
        if node.type in LOOPS:
            body, rounds = _count(_graph_of(node, "body")), _rounds(node)
        elif node.type in CALLS:
            body, rounds = _count(_graph_of(node, "f")), 1
        else:
            operations += 2 * _multiplications(node)
            continue
        operations += rounds * body.operations
        sequential = max(sequential, rounds * body.sequential)
    return Cost(operations, sequential)


def _needed(outputs: Iterable[Any]) -> Iterator[Any]:
    """The nodes that the outputs depend on, each once."""
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


def _rounds(loop: Any) -> int:
    """How often a loop runs: its `maximum_iterations`, which is the second input of its node."""
    try:
        with tf.compat.v1.Session(graph=loop.graph) as session:
            rounds = int(session.run(loop.inputs[1]))
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(f"{loop.name}: how often it runs depends on the graph's inputs") from error
    if rounds < 0:
        raise ValueError(f"{loop.name}: how often it runs is not known")
    return rounds


def _multiplications(node: Any) -> int:
    formula = FORMULAS.get(node.type)
    return formula(node) if formula else 0


def _matmul(node: Any) -> int:
    """A product with one column is a sum written as a product, as in layer normalisation: not counted."""
    left, (rows, columns) = _shape(node.inputs[0]), _shape(node.outputs[0])
    inner = left[0] if node.get_attr("transpose_a") else left[1]
    return rows * inner * columns if columns > 1 else 0


def _batch_matmul(node: Any) -> int:
    left = _shape(node.inputs[0])
    return prod(_shape(node.outputs[0])) * (left[-2] if node.get_attr("adj_x") else left[-1])


def _einsum(node: Any) -> int:
    """As many multiplications as there are ways to give each letter a place."""
    letters = node.get_attr("equation").decode().split("->")[0].split(",")
    shapes = map(_shape, node.inputs)
    sizes = {
        letter: size
        for term, shape in zip(letters, shapes, strict=True)
        for letter, size in zip(term, shape, strict=True)
    }
    return prod(sizes.values()) if len(letters) > 1 else 0


def _convolution(node: Any) -> int:
    """At each place of the output, all of the kernel [height, width, channels in, channels out]."""
    return prod(_shape(node.outputs[0])[:-1]) * prod(_shape(node.inputs[1]))


def _shape(tensor: Any) -> tuple[int, ...]:
    if not tensor.shape.is_fully_defined():
        raise ValueError(f"{tensor.name}: its shape {tensor.shape} is not known")
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
