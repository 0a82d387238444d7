"""Table 1: what a layer of each type costs, in operations and in time, against n and d."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.errors import T2TError
from t2t_revival.files import writing
from t2t_revival.model.restricted_attention import LEAST_BLOCK
from t2t_revival.reproduction.layer_points import (
    Plan,
    Point,
    Report,
    Size,
    measure,
    plan_of_scale,
    read_points,
)
from t2t_revival.reproduction.layers import (
    ATTENTION,
    HEAD,
    KERNEL,
    LAYER_TYPES,
    RECURRENT,
    RESTRICTED,
    UNPROJECTED,
    WINDOW,
    LayerType,
)
from t2t_revival.reproduction.paths import path_length
from t2t_revival.reproduction.report import Cell, Table

FIGURE_FILE = "layer_costs.png"
FIGURE: dict[str, Any] = {"figsize": (13, 4.8), "dpi": 120, "layout": "constrained"}
PATH_LENGTHS = (8, 32, 128)  # n of which path lengths are computed


def table(folder: Path, scale: str, report: Report, measuring: bool = True) -> Table:
    """Table 1 as the paper states it and as measured; what `folder` holds is not measured again.

    Args:
        folder: gets `layer_costs.csv`, a row for each measured point.
        scale: "cpu" for some minutes on two cores, "paper" for a GPU.
        report: is told how far it is.
        measuring: whether what is missing is measured; if not, what is missing is an error.

    Raises:
        T2TError: there is no such scale, or some is missing and is not to be measured.
        OSError: `folder` cannot be written.
    """
    plan = plan_of_scale(scale)
    points = measure(folder, plan, report, measuring=measuring)
    report("computing path lengths")
    rows = [_row(layer_type, plan, points) for layer_type in LAYER_TYPES]
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
    return Table("table1", title, columns, rows, _remarks(plan, points))


def draw(folder: Path, scale: str) -> list[Path]:
    """Draws time against n and against d, with quartiles, on logarithmic axes.

    Args:
        folder: where `table` has put its points.
        scale: as that of `table`.

    Returns:
        The PNG file.

    Raises:
        T2TError: there is no such scale, or nothing was measured.
    """
    plan, points = plan_of_scale(scale), read_points(folder)
    if not points:
        raise T2TError(
            f"{folder}: no layer was measured there on this machine: t2t-reproduce --table=1 does that"
        )
    from matplotlib.figure import Figure

    figure = Figure(**FIGURE)
    by_length, by_channels = figure.subplots(1, 2, sharey=True)
    _draw_panel(by_length, points, plan.of_lengths, 0)
    by_length.set_xlabel(f"n, positions (d = {plan.channels_held})")
    by_length.set_ylabel("milliseconds of a call")
    _draw_panel(by_channels, points, plan.of_channels, 1)
    by_channels.set_xlabel(f"d, channels (n = {plan.length_held})")
    figure.legend(
        *by_length.get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize="small"
    )
    path = folder / FIGURE_FILE
    with writing(path) as file:
        figure.savefig(file, format="png")
    return [path]


def _draw_panel(axes: Any, points: list[Point], sizes: list[Size], along: int) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([size[along] for size in sizes], [str(size[along]) for size in sizes])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    for layer_type in LAYER_TYPES:
        of_type = _at(points, layer_type.name, sizes)
        places = [point.size[along] for point in of_type]
        (line,) = axes.plot(
            places, [p.milliseconds for p in of_type], "o-", markersize=3, label=layer_type.name
        )
        lower, upper = [p.lower for p in of_type], [p.upper for p in of_type]
        axes.fill_between(places, lower, upper, color=line.get_color(), alpha=0.2, linewidth=0)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The e for which values ~ sizes^e fits best: least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _row(layer_type: LayerType, plan: Plan, points: list[Point]) -> list[Cell]:
    by_length = _at(points, layer_type.name, plan.of_lengths)
    by_channels = _at(points, layer_type.name, plan.of_channels)
    largest = by_length[-1]
    return [
        layer_type.name,
        layer_type.operations,
        _exponents(by_length, 0, lambda point: point.operations),
        _exponents(by_length, 0, lambda point: point.milliseconds),
        _exponents(by_channels, 1, lambda point: point.operations),
        _exponents(by_channels, 1, lambda point: point.milliseconds),
        round(largest.operations / 1e6),
        f"{_short(largest.milliseconds)} ({_short(largest.lower)} to {_short(largest.upper)})",
        layer_type.sequential,
        largest.sequential,
        layer_type.path,
        _paths(layer_type),
    ]


def _at(points: list[Point], name: str, sizes: list[Size]) -> list[Point]:
    """The points of a layer type, in the order of sizes."""
    of_type = {point.size: point for point in points if point.layer == name}
    return [of_type[size] for size in sizes if size in of_type]


def _exponents(points: list[Point], along: int, value: Callable[[Point], float]) -> str:
    sizes, values = [point.size[along] for point in points], [value(point) for point in points]
    return f"{exponent(sizes, values):.2f} ({exponent(sizes[-2:], values[-2:]):.2f})"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _paths(layer_type: LayerType) -> str:
    paths = ", ".join(str(path_length(layer_type, length)) for length in PATH_LENGTHS)
    if layer_type.make_dilated is None:
        return paths
    dilated = (str(path_length(layer_type, length, dilated=True)) for length in PATH_LENGTHS)
    return f"{paths}; dilated: {', '.join(dilated)}"


def _remarks(plan: Plan, points: list[Point]) -> list[str]:
    return [
        f"- Measured on {points[0].device}: one sequence, float32, forward only, compiled by `tf.function`. "
        f"Medians of {points[0].rounds} rounds, in which the types take turns; quartiles in brackets.",
        f"- n from {plan.lengths[0]} to {plan.lengths[-1]:,} at d = {plan.channels_held}, d from "
        f"{plan.channels[0]} to {plan.channels[-1]:,} at n = {plan.length_held}. Exponents are fitted by "
        "least squares of logarithms over all sizes; in brackets between the two largest, where what grows "
        "more slowly weighs less.",
        "- Operations are the multiplications and additions of matrix products and convolutions, counted "
        "from the graph, a loop's as often as it runs. What works on one element at a time, as the softmax, "
        "is in the time only.",
        "- The paper states O(n²·d) for self-attention and leaves out its projections to queries, keys, "
        "values and output: 8·n·d² operations beside 4·n²·d, and the larger part up to n = 2d. Hence rows "
        f"with them and without. A head has {HEAD} channels, as in base and big.",
        "- Recurrent: the paper does not say which. An LSTM, as the systems of table 2 that it is compared "
        "with have it (GNMT, Deep-Att): eight products with d x d, where a plain recurrent layer has two. "
        "It is TensorFlow's loop, whose operations can be counted; on a GPU, cuDNN's is faster.",
        f"- The paper leaves k and r open; here k = {KERNEL} and r = {WINDOW}. Convolutions are causal, as "
        "the recurrent layer, and padded to keep n; what they multiply by that padding is counted.",
        "- Restricted self-attention is `attention_window` of the encoder: n is cut into blocks of "
        f"{LEAST_BLOCK} positions or more, and each meets its own positions and those that r reaches beside "
        f"it. Up to n = {2 * LEAST_BLOCK - 1} there is one block, which costs what full attention does.",
        "- Longest path: how many layers it takes until the last output depends on the first input, times "
        "the sequential operations of one. Which output depends on which input, a layer's derivative says.",
        _against_recurrent(points),
        _against_full(plan, points),
    ]


def _against_recurrent(points: list[Point]) -> str:
    """What section 4 says of self-attention and recurrent layers, held against what was measured."""
    of = {(point.layer, point.size): point for point in points}
    shorter = {point.size for point in points if point.length < point.channels}

    def less(name: str, value: Callable[[Point], float]) -> int:
        return sum(value(of[name, size]) < value(of[RECURRENT, size]) for size in shorter)

    return (
        '- "Self-attention layers are faster than recurrent layers when the sequence length n is smaller '
        f'than the representation dimensionality d": of {len(shorter)} sizes with n < d, self-attention '
        f"takes less time at {less(ATTENTION, lambda point: point.milliseconds)}, fewer operations at "
        f"{less(ATTENTION, lambda point: point.operations)} "
        f"({less(UNPROJECTED, lambda point: point.operations)} without projections)."
    )


def _against_full(plan: Plan, points: list[Point]) -> str:
    """Where restricted self-attention is quicker, as section 4 hopes for very long sequences."""
    pairs = zip(
        _at(points, RESTRICTED, plan.of_lengths), _at(points, ATTENTION, plan.of_lengths), strict=True
    )
    quicker = [f"{full.length:,}" for own, full in pairs if own.upper < full.lower]
    return (
        "- Restricted self-attention takes less time than full (third quartile below the first), "
        f"at n = {', '.join(quicker) or 'none'} (d = {plan.channels_held})."
    )
