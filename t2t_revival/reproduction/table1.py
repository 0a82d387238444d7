"""Table 1 of the paper: operations, time, sequential operations and longest path of a layer, by its type."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from t2t_revival.curve_files import CsvTable
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.model import LayerConfig, MultiHeadAttention
from t2t_revival.model.extensions.restricted_attention import RestrictedSelfAttention
from t2t_revival.reproduction.operation_counts import count
from t2t_revival.reproduction.training_flops import device_name
from t2t_revival.visualization.result_table import Cell, ResultTable

FILE_NAME = "layer_costs.csv"
HEAD = 64  # channels of a head, as in the paper's base and big models
KERNEL = 3  # k, positions of a convolution's kernel
WINDOW = 64  # r, positions of a neighbourhood
ROUNDS = 15  # every layer type has one turn in each
TURN = 0.1  # seconds, in which a layer is called repeatedly, at least once

Layer = Callable[..., Any]
Size = tuple[int, int]  # n and d
Sizes = tuple[list[Size], list[Size]]  # with growing n, and with growing d
SIZES: dict[str, Sizes] = {
    "cpu": ([(64 << i, 512) for i in range(6)], [(512, 64 << i) for i in range(4)]),
    "paper": ([(128 << i, 512) for i in range(6)], [(1024, 128 << i) for i in range(5)]),
}


@dataclass(frozen=True)
class LayerType:
    """A row of table 1: the paper's name and entries, and functions that make the layer."""

    name: str
    operations: str
    sequential: str
    path: str
    make: Callable[[int], Layer]  # from d channels


def _attention(attention_type: Callable[..., MultiHeadAttention], channels: int) -> Layer:
    sizes = LayerConfig(max(1, channels // HEAD), channels, attention_window=WINDOW)
    return _built(attention_type(sizes), channels)


def _causal(layer_type: Any, channels: int) -> Layer:
    """Makes a convolution over a position and k - 1 earlier ones."""
    layer = _built(layer_type(channels, KERNEL), channels)
    return lambda x: layer(ops.pad(x, [[0, 0], [KERNEL - 1, 0], [0, 0]]))


def _built(layer: Any, channels: int) -> Layer:
    layer.build((None, None, channels))
    return layer


SEPARABLE = f"separable convolutional (k = {KERNEL})"
RESTRICTED = f"restricted self-attention (r = {WINDOW})"
LSTM = partial(keras.layers.LSTM, return_sequences=True, use_cudnn=False)
STACKED = "O(n/k), dilated O(log_k(n))"
_convolution = partial(_causal, keras.layers.Conv1D)
_separable = partial(_causal, keras.layers.SeparableConv1D)
LAYER_TYPES = (
    LayerType("self-attention", "O(n²·d)", "O(1)", "O(1)", partial(_attention, MultiHeadAttention)),
    LayerType("recurrent (LSTM)", "O(n·d²)", "O(n)", "O(n)", lambda d: _built(LSTM(d), d)),
    LayerType(f"convolutional (k = {KERNEL})", "O(k·n·d²)", "O(1)", STACKED, _convolution),
    LayerType(SEPARABLE, "O(k·n·d + n·d²)", "O(1)", STACKED, _separable),
    LayerType(RESTRICTED, "O(r·n·d)", "O(1)", "O(n/r)", partial(_attention, RestrictedSelfAttention)),
)


@dataclass(frozen=True)
class Timing:
    """Time of one call of a layer type at one size, and its operations (see `operation_counts.Cost`)."""

    layer: str
    length: int
    channels: int
    operations: int
    sequential: int
    milliseconds: float  # median over the rounds
    lower: float  # first quartile
    upper: float  # third quartile
    device: str

    @classmethod
    def parse(cls, cells: dict[str, str]) -> Timing:
        """Returns the timing of a row of `FILE_NAME`."""
        kinds: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float}
        return cls(**{f.name: kinds[str(f.type)](cells[f.name]) for f in dataclasses.fields(cls)})


def make_table(
    folder: Path, scale: str, on_message: Callable[[str], None], measure_missing: bool = True
) -> ResultTable:
    """Measures what `folder` lacks, and returns the paper's table 1 beside the measurements.

    Scale "cpu" takes some minutes on two cores, "paper" is for a GPU.

    Raises:
        T2TError: there is no such scale, or timings are missing and not to be measured.
    """
    by_length, by_channels = sizes_of(scale)
    if not (timings := read_timings(folder, scale)):
        if not measure_missing:
            fault = "sizes were not measured on this device: leave out --norun to measure them"
            raise T2TError(f"{folder / FILE_NAME}: {fault}")
        for size in dict.fromkeys([*by_length, *by_channels]):
            on_message(f"measuring {len(LAYER_TYPES)} layer types at n = {size[0]}, d = {size[1]}")
            timings |= _measure(size)
        folder.mkdir(parents=True, exist_ok=True)
        CsvTable(folder / FILE_NAME).write(map(dataclasses.asdict, timings.values()))
    rows: list[list[Cell]] = []
    for layer_type in LAYER_TYPES:
        lengths, channels = (
            [timings[layer_type.name, s] for s in sizes] for sizes in (by_length, by_channels)
        )
        last = lengths[-1]
        rows.append(
            [
                layer_type.name,
                layer_type.operations,
                _exponents(by_length, 0, [timing.operations for timing in lengths]),
                _exponents(by_length, 0, [timing.milliseconds for timing in lengths]),
                _exponents(by_channels, 1, [timing.operations for timing in channels]),
                _exponents(by_channels, 1, [timing.milliseconds for timing in channels]),
                round(last.operations / 1e6),
                f"{_short(last.milliseconds)} ({_short(last.lower)} to {_short(last.upper)})",
                layer_type.sequential,
                last.sequential,
                layer_type.path,
            ]
        )
    columns = (
        "layer type",
        "operations (paper)",
        "n: exponent of operations",
        "n: exponent of time",
        "d: exponent of operations",
        "d: exponent of time",
        f"MFLOP at n = {last.length:,}, d = {by_length[-1][1]:,}",
        "ms (quartiles)",
        "sequential operations (paper)",
        f"counted at n = {last.length:,}",
        "longest path (paper)",
    )
    remarks = [
        f"- Measured on {device_name()}: one sequence, float32, forward only; medians of {ROUNDS} rounds in "
        "which the types take turns. Exponents are fitted to all sizes, in brackets to the largest two.",
        f"- k = {KERNEL}, r = {WINDOW}, heads of {HEAD} channels. Operations are those of products and of "
        "convolutions, counted from the graph. docs/reproduction.md has what differs from the paper.",
    ]
    title = "Table 1: operations, time, sequential operations and longest path of a layer, by its type"
    return ResultTable("table1", title, columns, rows, remarks)


def sizes_of(scale: str) -> Sizes:
    """Returns the sizes of a scale; raises T2TError if there is no such scale."""
    if scale not in SIZES:
        raise T2TError(did_you_mean(scale, SIZES, "scale"))
    return SIZES[scale]


def read_timings(folder: Path, scale: str) -> dict[tuple[str, Size], Timing]:
    """Returns the stored timings by layer type and size; none if they are not all there, of this device."""
    stored = CsvTable(folder / FILE_NAME).parse(Timing.parse)
    timings = {(t.layer, (t.length, t.channels)): t for t in stored if t.device == device_name()}
    needed = itertools.product((t.name for t in LAYER_TYPES), itertools.chain(*sizes_of(scale)))
    return timings if timings.keys() >= set(needed) else {}


def _measure(size: Size) -> dict[tuple[str, Size], Timing]:
    """Lets the layer types take turns, so that other work on the machine affects all of them alike."""
    x = tf.random.stateless_normal((1, *size), seed=(1, 2))

    def seconds_per_call(function: Any, calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            function(x)
        tf.test.experimental.sync_devices()
        return (time.perf_counter() - start) / calls

    functions = {layer_type.name: traced(layer_type.make(size[1]), *size) for layer_type in LAYER_TYPES}
    for function in functions.values():
        function(x)  # the first call initialises
    calls = {name: max(1, int(TURN / seconds_per_call(f, 1))) for name, f in functions.items()}
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            seconds[name].append(1000 * seconds_per_call(function, calls[name]))
    timings = {}
    for name, function in functions.items():
        lower, median, upper = quantiles(seconds[name], n=4, method="inclusive")
        timings[name, size] = Timing(name, *size, *count(function), median, lower, upper, device_name())
    return timings


def exponent(sizes: Sequence[float], measures: Sequence[float]) -> float:
    """Fits measures ~ sizes^e by least squares of the logarithms, and returns e."""
    return float(np.polyfit(np.log(sizes), np.log(measures), 1)[0])


def _exponents(sizes: list[Size], axis: int, measures: Sequence[float]) -> str:
    """Returns the exponent over all sizes, and over the last two in brackets."""
    grown = [size[axis] for size in sizes]
    return f"{exponent(grown, measures):.2f} ({exponent(grown[-2:], measures[-2:]):.2f})"


def _short(number: float) -> str:
    return f"{float(f'{number:.3g}'):,g}"


def traced(layer: Layer, length: int, channels: int) -> Any:
    """Returns a layer's graph, a concrete function of float32 [1, length, channels]."""
    return tf.function(layer).get_concrete_function(tf.TensorSpec((1, length, channels)))
