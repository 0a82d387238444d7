"""Maximum path lengths of table 1 (section 4), computed from the derivatives of layers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, repeat
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.reproduction.table1.layer_types import HEAD, Layer, LayerType
from t2t_revival.reproduction.table1.operation_counts import count as count_operations


def path_length(layer_type: LayerType, length: int, dilated: bool = False) -> int:
    """Returns the sequential operations between the first input and the last output.

    That is the number of layers until the last output depends on the first input, times the sequential
    operations of a layer.

    Args:
        layer_type: a row of table 1.
        length: n, positions.
        dilated: stack dilated convolutions, whose positions are k^i apart in layer i.
    """
    layer = layer_type.make(HEAD)
    if dilated and layer_type.make_dilated:
        make = layer_type.make_dilated
        return layers_to_reach(influence(make(HEAD, number), length) for number in count())
    sequential = count_operations(traced(layer, length, HEAD)).sequential
    return layers_to_reach(repeat(influence(layer, length))) * sequential


def traced(layer: Layer, length: int, channels: int) -> Any:
    """Returns a layer's graph, a concrete function of float32 [1, length, channels]."""
    return tf.function(layer).get_concrete_function(tf.TensorSpec((1, length, channels)))


def layers_to_reach(influences: Iterable[np.ndarray]) -> int:
    """Returns the number of stacked layers until the last output depends on the first input.

    Args:
        influences: bool [output, input] of each layer.

    Raises:
        ValueError: the last output never depends on the first input.
    """
    reached: np.ndarray | None = None  # positions that depend on the first input, bool [length]
    for number, influence_of_layer in enumerate(influences, 1):
        before = np.arange(len(influence_of_layer)) == 0 if reached is None else reached
        reached = np.asarray((influence_of_layer & before).any(axis=1))
        if reached[-1]:
            return number
        if not (reached & ~before).any():
            break
    raise ValueError("the last output never depends on the first input")


def influence(layer: Layer, length: int) -> np.ndarray:
    """Returns the dependencies of a layer's outputs on its inputs: its non-zero derivatives.

    Args:
        layer: maps [batch, length, `HEAD`] to the same shape.
        length: n, positions.

    Returns:
        bool [output, input].
    """
    sequence = tf.random.stateless_normal((1, length, HEAD), seed=(1, 2))
    x = tf.repeat(sequence, length, axis=0)  # copy i is for output i
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = tf.gather(layer(x), tf.range(length), axis=1, batch_dims=1)  # [length, HEAD]
    gradient = tape.gradient(outputs, x)  # [output, input, HEAD]
    return np.abs(gradient.numpy()).max(axis=2) > 0
