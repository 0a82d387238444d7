"""Table 1 of the paper: operations and time of each layer type as n and d grow, and path lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.errors import T2TError
from t2t_revival.model.extensions.restricted_attention import MIN_BLOCK
from t2t_revival.reproduction.table1.layer_types import (
    ATTENTION,
    HEAD,
    KERNEL,
    LAYER_TYPES,
    RECURRENT,
    RESTRICTED,
    UNPROJECTED,
    WINDOW,
    LayerType,
    path_length,
)
from t2t_revival.reproduction.table1.timings import (
    OnMessage,
    Plan,
    Size,
    Timing,
    measure,
    plan_of_scale,
    read_timings,
)
from t2t_revival.visualization import png_figure
from t2t_revival.visualization.result_table import Cell, ResultTable

FIGURE_FILE = "layer_costs.png"
PATH_LENGTHS = (8, 32, 128)  # values of n for path lengths


def make_table(folder: Path, scale: str, on_message: OnMessage, measure_missing: bool = True) -> ResultTable:
    """Measures what `folder` lacks, and returns the paper's table 1 beside the measurements.

    Scale "cpu" takes some minutes on two cores, "paper" is for a GPU.

    Raises:
        T2TError: there is no such scale, or timings are missing and not to be measured.
    """
    plan = plan_of_scale(scale)
    timings = measure(folder, plan, on_message, measure_missing=measure_missing)
    on_message("computing path lengths")
    rows = [_row(layer_type, plan, timings) for layer_type in LAYER_TYPES]
    largest = plan.of_lengths[-1]
    columns = (
        "layer type",
        "operations (paper)",
        "n: exponent of operations",
        "n: exponent of time",
        "d: exponent of operations",
        "d: exponent of time",
        f"MFLOP at n = {largest[0]:,}, d = {largest[1]:,}",
        "ms (quartiles)",
        "sequential operations (paper)",
        f"counted at n = {largest[0]:,}",
        "longest path (paper)",
        f"computed at n = {', '.join(map(str, PATH_LENGTHS))}",
    )
    title = "Table 1: operations, time, sequential operations and longest path of a layer, by its type"
    return ResultTable("table1", title, columns, rows, _remarks(plan, timings))


def draw(folder: Path, scale: str) -> Path:
    """Draws time against n and against d, with quartiles, on logarithmic axes, and returns the PNG file.

    Raises:
        T2TError: there is no such scale, or no timing of this device.
    """
    plan, timings = plan_of_scale(scale), read_timings(folder)
    if not timings:
        raise T2TError(f"{folder} has no timings of this device: measure them with t2t-reproduce --table=1")
    path = folder / FIGURE_FILE
    with png_figure(path, 13, 4.8) as figure:
        by_length, by_channels = figure.subplots(1, 2, sharey=True)
        _draw_panel(by_length, timings, plan.of_lengths, 0)
        by_length.set_xlabel(f"n, positions (d = {plan.fixed_channels})")
        by_length.set_ylabel("milliseconds per call")
        _draw_panel(by_channels, timings, plan.of_channels, 1)
        by_channels.set_xlabel(f"d, channels (n = {plan.fixed_length})")
        handles = by_length.get_legend_handles_labels()
        figure.legend(*handles, loc="outside right center", frameon=False, fontsize="small")
    return path


def _draw_panel(axes: Any, timings: list[Timing], sizes: list[Size], axis: int) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([size[axis] for size in sizes], [str(size[axis]) for size in sizes])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    for layer_type in LAYER_TYPES:
        of_type = _at_sizes(timings, layer_type.name, sizes)
        x = [timing.size[axis] for timing in of_type]
        (line,) = axes.plot(x, [t.milliseconds for t in of_type], "o-", markersize=3, label=layer_type.name)
        lower, upper = [t.lower for t in of_type], [t.upper for t in of_type]
        axes.fill_between(x, lower, upper, color=line.get_color(), alpha=0.2, linewidth=0)


def exponent(sizes: Sequence[float], measures: Sequence[float]) -> float:
    """Fits measures ~ sizes^e by least squares of the logarithms, and returns e."""
    return float(np.polyfit(np.log(sizes), np.log(measures), 1)[0])


def _row(layer_type: LayerType, plan: Plan, timings: list[Timing]) -> list[Cell]:
    by_length = _at_sizes(timings, layer_type.name, plan.of_lengths)
    by_channels = _at_sizes(timings, layer_type.name, plan.of_channels)
    largest = by_length[-1]
    return [
        layer_type.name,
        layer_type.operations,
        _exponents(by_length, 0, lambda timing: timing.operations),
        _exponents(by_length, 0, lambda timing: timing.milliseconds),
        _exponents(by_channels, 1, lambda timing: timing.operations),
        _exponents(by_channels, 1, lambda timing: timing.milliseconds),
        round(largest.operations / 1e6),
        f"{_short(largest.milliseconds)} ({_short(largest.lower)} to {_short(largest.upper)})",
        layer_type.sequential,
        largest.sequential,
        layer_type.path,
        _paths(layer_type),
    ]


def _at_sizes(timings: list[Timing], name: str, sizes: list[Size]) -> list[Timing]:
    """Returns the timings of a layer type, in the order of `sizes`."""
    of_type = {timing.size: timing for timing in timings if timing.layer == name}
    return [of_type[size] for size in sizes if size in of_type]


def _exponents(timings: list[Timing], axis: int, value: Callable[[Timing], float]) -> str:
    """Returns the exponent over all sizes, and over the last two in brackets."""
    sizes, values = [timing.size[axis] for timing in timings], [value(timing) for timing in timings]
    return f"{exponent(sizes, values):.2f} ({exponent(sizes[-2:], values[-2:]):.2f})"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _paths(layer_type: LayerType) -> str:
    paths = ", ".join(str(path_length(layer_type, length)) for length in PATH_LENGTHS)
    if layer_type.make_dilated is None:
        return paths
    dilated = (str(path_length(layer_type, length, dilated=True)) for length in PATH_LENGTHS)
    return f"{paths}; dilated: {', '.join(dilated)}"


def _remarks(plan: Plan, timings: list[Timing]) -> list[str]:
    return [
        f"- Measured on {timings[0].device}: one sequence, float32, forward only, compiled by `tf.function`. "
        f"Medians of {timings[0].rounds} rounds in which the layer types take turns; quartiles in brackets.",
        f"- n from {plan.lengths[0]} to {plan.lengths[-1]:,} at d = {plan.fixed_channels}, d from "
        f"{plan.channels[0]} to {plan.channels[-1]:,} at n = {plan.fixed_length}. Exponents are "
        "least-squares fits of the logarithms over all sizes; in brackets, between the two largest, where "
        "lower-order terms weigh less.",
        "- Operations are multiplications and additions of matrix products and convolutions, counted from "
        "the graph; a loop's body counts once per iteration. Element-wise operations such as the softmax "
        "are only in the time.",
        "- The paper's O(n²·d) for self-attention leaves out the projections to queries, keys, values and "
        "output: 8·n·d² operations beside 4·n²·d, the larger part up to n = 2d. Hence rows with and without "
        f"them. A head has {HEAD} channels, as in base and big.",
        "- Recurrent: the paper does not name the cell. Here an LSTM, as in the systems that table 2 "
        "compares (GNMT, Deep-Att): eight products with d x d matrices, where a plain recurrent layer has "
        "two. It runs as a TensorFlow loop, whose operations can be counted; on a GPU, cuDNN's is faster.",
        f"- The paper leaves k and r open; here k = {KERNEL} and r = {WINDOW}. Convolutions are causal, as "
        "the recurrent layer is, and padded to keep n; products with that padding are counted.",
        "- Restricted self-attention is the encoder's `attention_window`: n is split into blocks of "
        f"{MIN_BLOCK} positions or more, and each block attends to itself and to the positions within r "
        f"beside it. Up to n = {2 * MIN_BLOCK - 1} there is one block, at the cost of full attention.",
        "- Longest path: the number of layers until the last output depends on the first input, times the "
        "sequential operations of a layer. Dependencies are non-zero derivatives.",
        _compare_recurrent(timings),
        _compare_restricted(plan, timings),
    ]


def _compare_recurrent(timings: list[Timing]) -> str:
    """Tests section 4's statement on self-attention and recurrent layers."""
    by_size = {(timing.layer, timing.size): timing for timing in timings}
    shorter = {timing.size for timing in timings if timing.length < timing.channels}

    def count_less(name: str, value: Callable[[Timing], float]) -> int:
        return sum(value(by_size[name, size]) < value(by_size[RECURRENT, size]) for size in shorter)

    return (
        '- "Self-attention layers are faster than recurrent layers when the sequence length n is smaller '
        f'than the representation dimensionality d": of {len(shorter)} sizes with n < d, self-attention '
        f"takes less time at {count_less(ATTENTION, lambda timing: timing.milliseconds)}, fewer operations "
        f"at {count_less(ATTENTION, lambda timing: timing.operations)} "
        f"({count_less(UNPROJECTED, lambda timing: timing.operations)} without projections)."
    )


def _compare_restricted(plan: Plan, timings: list[Timing]) -> str:
    """Lists the lengths at which restricted self-attention is faster, as section 4 expects of long ones."""
    pairs = zip(
        _at_sizes(timings, RESTRICTED, plan.of_lengths),
        _at_sizes(timings, ATTENTION, plan.of_lengths),
        strict=True,
    )
    faster = [f"{full.length:,}" for restricted, full in pairs if restricted.upper < full.lower]
    return (
        "- Restricted self-attention is faster than full self-attention (third quartile below the first) "
        f"at n = {', '.join(faster) or 'none'} (d = {plan.fixed_channels})."
    )
