"""Layer types of table 1 (section 4), each from [batch, n, d] to [batch, n, d], and their path lengths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from t2t_revival.model import LayerConfig, MultiHeadAttention
from t2t_revival.model.extensions.restricted_attention import RestrictedSelfAttention
from t2t_revival.reproduction.table1.operation_counts import count

HEAD = 64  # channels of a head, as in the paper's base and big models
KERNEL = 3  # k, positions of a convolution's kernel
WINDOW = 64  # r, positions of a neighbourhood

Layer = Callable[..., Any]


@dataclass(frozen=True)
class LayerType:
    """A row of table 1: the paper's name and entries, and functions that make the layer."""

    name: str
    operations: str
    sequential: str
    path: str
    make: Callable[[int], Layer]  # from d channels
    make_dilated: Callable[[int, int], Layer] | None = None  # from d, and the layer's index in the stack


class Unprojected(MultiHeadAttention):
    """`MultiHeadAttention` without the projections W^Q, W^K, W^V and W^O."""

    def _matmul(self, rows: Any, kernel: Any) -> Any:
        return ops.tile(rows, (1, kernel.shape[1] // rows.shape[1]))


class UnprojectedRestricted(Unprojected, RestrictedSelfAttention):
    """`RestrictedSelfAttention` without projections."""


def _attention(attention_type: Callable[..., MultiHeadAttention], channels: int) -> Layer:
    sizes = LayerConfig(max(1, channels // HEAD), channels, attention_window=WINDOW)
    return _built(attention_type(sizes), channels)


def _recurrent(channels: int) -> Layer:
    return _built(keras.layers.LSTM(channels, return_sequences=True, use_cudnn=False), channels)


def _causal(layer_type: Any, channels: int, number: int = 0) -> Layer:
    """Makes a convolution over a position and k - 1 earlier ones, k^number apart."""
    dilation = KERNEL**number
    layer = _built(layer_type(channels, KERNEL, dilation_rate=dilation), channels)
    return lambda x: layer(ops.pad(x, [[0, 0], [(KERNEL - 1) * dilation, 0], [0, 0]]))


def _built(layer: Any, channels: int) -> Layer:
    layer.build((None, None, channels))
    return layer


ATTENTION, UNPROJECTED, RECURRENT = "self-attention", "self-attention, unprojected", "recurrent (LSTM)"
RESTRICTED = f"restricted self-attention (r = {WINDOW})"
STACKED = "O(n/k), dilated O(log_k(n))"
CONVOLUTIONAL, SEPARABLE = f"convolutional (k = {KERNEL})", f"separable convolutional (k = {KERNEL})"
_convolution = partial(_causal, keras.layers.Conv1D)
_separable = partial(_causal, keras.layers.SeparableConv1D)
LAYER_TYPES = (
    LayerType(ATTENTION, "O(n²·d)", "O(1)", "O(1)", partial(_attention, MultiHeadAttention)),
    LayerType(UNPROJECTED, "O(n²·d)", "O(1)", "O(1)", partial(_attention, Unprojected)),
    LayerType(RECURRENT, "O(n·d²)", "O(n)", "O(n)", _recurrent),
    LayerType(CONVOLUTIONAL, "O(k·n·d²)", "O(1)", STACKED, _convolution, _convolution),
    LayerType(SEPARABLE, "O(k·n·d + n·d²)", "O(1)", STACKED, _separable, _separable),
    LayerType(RESTRICTED, "O(r·n·d)", "O(1)", "O(n/r)", partial(_attention, RestrictedSelfAttention)),
    LayerType(
        f"{RESTRICTED}, unprojected", "O(r·n·d)", "O(1)", "O(n/r)", partial(_attention, UnprojectedRestricted)
    ),
)


def path_length(layer_type: LayerType, length: int, dilated: bool = False) -> int:
    """Returns the sequential operations between the first of `length` inputs and the last output.

    That is the number of layers until the last output depends on the first input, times the sequential
    operations of a layer. `dilated` stacks dilated convolutions, whose positions are k^i apart in layer i.
    """
    layer = layer_type.make(HEAD)
    if dilated and layer_type.make_dilated:
        make = layer_type.make_dilated
        return layers_to_reach(influence(make(HEAD, number), length) for number in itertools.count())
    sequential = count(traced(layer, length, HEAD)).sequential
    return layers_to_reach(itertools.repeat(influence(layer, length))) * sequential


def traced(layer: Layer, length: int, channels: int) -> Any:
    """Returns a layer's graph, a concrete function of float32 [1, length, channels]."""
    return tf.function(layer).get_concrete_function(tf.TensorSpec((1, length, channels)))


def layers_to_reach(influences: Iterable[np.ndarray]) -> int:
    """Returns the number of stacked layers until the last output depends on the first input.

    `influences` has a bool [output, input] for each layer. If the output never depends on the input, a
    ValueError is raised.
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
    """Returns the dependencies of outputs on inputs, bool [output, input]: non-zero derivatives.

    The layer maps [batch, length, `HEAD`] to the same shape.
    """
    sequence = tf.random.stateless_normal((1, length, HEAD), seed=(1, 2))
    x = tf.repeat(sequence, length, axis=0)  # copy i is for output i
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = tf.gather(layer(x), tf.range(length), axis=1, batch_dims=1)  # [length, HEAD]
    gradient = tape.gradient(outputs, x)  # [output, input, HEAD]
    return np.abs(gradient.numpy()).max(axis=2) > 0
