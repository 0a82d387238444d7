"""Layer types of table 1 (section 4), each from [batch, n, d] to [batch, n, d]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras
from keras import ops

from t2t_revival.model.attention import MultiHeadAttention
from t2t_revival.model.extensions.restricted_attention import RestrictedSelfAttention

HEAD = 64  # channels of a head, as in the paper's base and big models
KERNEL = 3  # k, positions of a convolution's kernel
WINDOW = 64  # r, positions of a neighbourhood

Layer = Callable[..., Any]


@dataclass(frozen=True)
class LayerType:
    """A row of table 1.

    Attributes:
        name: the paper's name.
        operations: the paper's complexity per layer.
        sequential: the paper's sequential operations.
        path: the paper's maximum path length.
        make: makes a layer for d channels.
        make_dilated: makes layer i, from 0, of a stack of dilated convolutions, from d and i.
    """

    name: str
    operations: str
    sequential: str
    path: str
    make: Callable[[int], Layer]
    make_dilated: Callable[[int, int], Layer] | None = None


class Unprojected(MultiHeadAttention):
    """`MultiHeadAttention` without the projections W^Q, W^K, W^V and W^O."""

    def _matmul(self, rows: Any, kernel: Any) -> Any:
        return ops.tile(rows, (1, kernel.shape[1] // rows.shape[1]))


class UnprojectedRestricted(Unprojected, RestrictedSelfAttention):
    """`RestrictedSelfAttention` without projections."""


def _attention(attention_type: Callable[..., MultiHeadAttention], channels: int) -> Layer:
    return _built(attention_type(num_heads=max(1, channels // HEAD), hidden_size=channels), channels)


def _recurrent(channels: int) -> Layer:
    return _built(keras.layers.LSTM(channels, return_sequences=True, use_cudnn=False), channels)


def _convolution(channels: int, number: int = 0) -> Layer:
    return _causal(keras.layers.Conv1D, channels, number)


def _separable(channels: int, number: int = 0) -> Layer:
    return _causal(keras.layers.SeparableConv1D, channels, number)


def _causal(layer_type: Any, channels: int, number: int) -> Layer:
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
LAYER_TYPES = (
    LayerType(ATTENTION, "O(n²·d)", "O(1)", "O(1)", partial(_attention, MultiHeadAttention)),
    LayerType(UNPROJECTED, "O(n²·d)", "O(1)", "O(1)", partial(_attention, Unprojected)),
    LayerType(RECURRENT, "O(n·d²)", "O(n)", "O(n)", _recurrent),
    LayerType(f"convolutional (k = {KERNEL})", "O(k·n·d²)", "O(1)", STACKED, _convolution, _convolution),
    LayerType(
        f"separable convolutional (k = {KERNEL})",
        "O(k·n·d + n·d²)",
        "O(1)",
        STACKED,
        _separable,
        _separable,
    ),
    LayerType(
        RESTRICTED,
        "O(r·n·d)",
        "O(1)",
        "O(n/r)",
        partial(_attention, partial(RestrictedSelfAttention, WINDOW)),
    ),
    LayerType(
        f"{RESTRICTED}, unprojected",
        "O(r·n·d)",
        "O(1)",
        "O(n/r)",
        partial(_attention, partial(UnprojectedRestricted, WINDOW)),
    ),
)
