"""Section 4, table 1: the layer types that self-attention is compared with.

Each maps [batch, n, d] to the same shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras
from keras import ops

from t2t_revival import registry
from t2t_revival.hparams import HParams
from t2t_revival.model.attention import MultiHeadAttention
from t2t_revival.model.restricted_attention import Neighbourhood, RestrictedSelfAttention

HEAD = 64  # channels of a head, as in the paper's base and big models
KERNEL = 3  # k, positions that a convolution looks at
WINDOW = 64  # r, positions of a neighbourhood

Layer = Callable[..., Any]


@dataclass(frozen=True)
class LayerType:
    """A row of table 1.

    Attributes:
        name: as the paper has it.
        operations: stated operations of a layer.
        sequential: stated sequential operations.
        path: stated maximum path length.
        make: a layer for d channels.
        make_dilated: the layer of a number, counted from 0, in a stack of dilated convolutions.
    """

    name: str
    operations: str
    sequential: str
    path: str
    make: Callable[[int], Layer]
    make_dilated: Callable[[int, int], Layer] | None = None


class Unprojected(MultiHeadAttention):
    """`MultiHeadAttention` with the identity for W^Q, W^K, W^V and W^O, which is not multiplied with."""

    def _matmul(self, x: Any, kernel: Any) -> Any:
        return ops.tile(x, (1, kernel.shape[1] // x.shape[1]))


class UnprojectedRestricted(Unprojected, RestrictedSelfAttention):
    """`RestrictedSelfAttention` without projections."""


def attention_hparams(channels: int, window: int = 0) -> HParams:
    """Of a model of so many channels, with heads of `HEAD` channels and `window` for `attention_window`."""
    heads = max(1, channels // HEAD)
    return registry.hparams("base").replace(hidden_size=channels, num_heads=heads, attention_window=window)


def _full(kind: type[MultiHeadAttention], channels: int) -> Layer:
    return _built(kind(attention_hparams(channels)), channels)


def _restricted(kind: type[RestrictedSelfAttention], channels: int) -> Layer:
    hparams = attention_hparams(channels, WINDOW)
    neighbourhood = Neighbourhood.of(hparams, masked=False)
    assert neighbourhood is not None
    layer = _built(kind(hparams, neighbourhood), channels)
    return lambda x: layer(x, bias=neighbourhood.bias(ops.zeros((x.shape[0], 1, 1, x.shape[1]))))


def _recurrent(channels: int) -> Layer:
    return _built(keras.layers.LSTM(channels, return_sequences=True, use_cudnn=False), channels)


def _convolution(channels: int, number: int = 0) -> Layer:
    return _causal(keras.layers.Conv1D, channels, number)


def _separable(channels: int, number: int = 0) -> Layer:
    return _causal(keras.layers.SeparableConv1D, channels, number)


def _causal(kind: Any, channels: int, number: int) -> Layer:
    """Each output is of the input at its place and of k - 1 before it, k^number apart."""
    apart = KERNEL**number
    layer = _built(kind(channels, KERNEL, dilation_rate=apart), channels)
    return lambda x: layer(ops.pad(x, [[0, 0], [(KERNEL - 1) * apart, 0], [0, 0]]))


def _built(layer: Any, channels: int) -> Layer:
    layer.build((None, None, channels))
    return layer


ATTENTION, UNPROJECTED, RECURRENT = "self-attention", "self-attention, unprojected", "recurrent (LSTM)"
RESTRICTED = f"restricted self-attention (r = {WINDOW})"
STACKED = "O(n/k), dilated O(log_k(n))"
LAYER_TYPES = (
    LayerType(ATTENTION, "O(n²·d)", "O(1)", "O(1)", partial(_full, MultiHeadAttention)),
    LayerType(UNPROJECTED, "O(n²·d)", "O(1)", "O(1)", partial(_full, Unprojected)),
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
    LayerType(RESTRICTED, "O(r·n·d)", "O(1)", "O(n/r)", partial(_restricted, RestrictedSelfAttention)),
    LayerType(
        f"{RESTRICTED}, unprojected",
        "O(r·n·d)",
        "O(1)",
        "O(n/r)",
        partial(_restricted, UnprojectedRestricted),
    ),
)
