"""Section 4: how many layers a signal passes from one end of a sequence to the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, repeat
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.reproduction.layers import HEAD, Layer, LayerType
from t2t_revival.reproduction.operations import count as count_operations


def path_length(layer_type: LayerType, length: int, dilated: bool = False) -> int:
    """Operations, each of which needs the one before, from the first input to the last output.

    That is as many layers as it takes until the last output depends on the first input, times the sequential
    operations of one layer.

    Args:
        layer_type: a row of table 1.
        length: n, positions.
        dilated: whether convolutions look at positions ever farther apart, k^i in layer i.
    """
    layer = layer_type.make(HEAD)
    if dilated and layer_type.make_dilated:
        make = layer_type.make_dilated
        return layers_to_reach(influence(make(HEAD, number), length) for number in count())
    sequential = count_operations(traced(layer, length, HEAD)).sequential
    return layers_to_reach(repeat(influence(layer, length))) * sequential


def traced(layer: Layer, length: int, channels: int) -> Any:
    """The graph of a layer for one sequence, a concrete function of float32 [1, length, channels]."""
    return tf.function(layer).get_concrete_function(tf.TensorSpec((1, length, channels)))


def layers_to_reach(influences: Iterable[np.ndarray]) -> int:
    """How many layers of a stack it takes until the last output depends on the first input.

    Args:
        influences: of each layer, bool [output, input].

    Raises:
        ValueError: a layer carries nothing any farther, so that it never does.
    """
    for number, reached in enumerate(_reached(influences), 1):
        if reached[-1]:
            return number
    raise ValueError("the last output never depends on the first input")


def _reached(influences: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """After each layer, which positions depend on the first input."""
    reached: np.ndarray | None = None
    for looks_at in influences:
        before = np.arange(len(looks_at)) == 0 if reached is None else reached
        reached = np.asarray((looks_at & before).any(axis=1))
        yield reached
        if not (reached & ~before).any():
            return


def influence(layer: Layer, length: int) -> np.ndarray:
    """Which outputs of a layer depend on which inputs: where the derivative is not 0.

    Args:
        layer: maps [batch, length, `HEAD`] to the same shape.
        length: n, positions.

    Returns:
        bool [output, input].
    """
    sequence = tf.random.stateless_normal((1, length, HEAD), seed=(1, 2))
    x = tf.repeat(sequence, length, axis=0)  # in copy i, output i is looked at
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = tf.gather(layer(x), tf.range(length), axis=1, batch_dims=1)  # [length, HEAD]
    gradient = tape.gradient(outputs, x)  # [output, input, HEAD]
    return np.abs(gradient.numpy()).max(axis=2) > 0
