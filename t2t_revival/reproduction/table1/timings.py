"""Time and operations of each layer type at each n and d of table 1, kept in a CSV file."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import tensorflow as tf

from t2t_revival.curve_files import CsvTable
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.reproduction.table1.layer_types import LAYER_TYPES, LayerType, traced
from t2t_revival.reproduction.table1.operation_counts import count
from t2t_revival.reproduction.training_flops import device_name

FILE_NAME = "layer_costs.csv"
TURNS = 512 * 512  # n·d at which one call takes as long as a turn of the smallest size

OnMessage = Callable[[str], None]
Size = tuple[int, int]  # n and d


@dataclass(frozen=True)
class Plan:
    """Sizes and durations of the measurements."""

    lengths: tuple[int, ...]  # values of n, at `fixed_channels` channels
    channels: tuple[int, ...]  # values of d, at `fixed_length` positions
    fixed_channels: int
    fixed_length: int
    rounds: int  # every layer type has one turn in each
    turn: float  # seconds, in which a layer is called repeatedly, at least once

    @property
    def of_lengths(self) -> list[Size]:
        """Sizes with varying n."""
        return [(length, self.fixed_channels) for length in self.lengths]

    @property
    def of_channels(self) -> list[Size]:
        """Sizes with varying d."""
        return [(self.fixed_length, channels) for channels in self.channels]

    @property
    def sizes(self) -> list[Size]:
        """All sizes, smallest first."""
        return sorted({*self.of_lengths, *self.of_channels}, key=lambda size: (_work(size), size))


PLANS = {
    "cpu": Plan((64, 128, 256, 512, 1024, 2048), (64, 128, 256, 512), 512, 512, 15, 0.1),
    "paper": Plan((128, 256, 512, 1024, 2048, 4096), (128, 256, 512, 1024, 2048), 512, 1024, 15, 0.2),
}


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
    rounds: int
    device: str

    @property
    def size(self) -> Size:
        """n and d."""
        return self.length, self.channels


def plan_of_scale(name: str) -> Plan:
    """Returns the plan of a scale.

    Raises:
        T2TError: there is no such scale.
    """
    if name not in PLANS:
        raise T2TError(did_you_mean(name, PLANS, "scale"))
    return PLANS[name]


def read_timings(folder: Path) -> list[Timing]:
    """Returns the stored timings of this device, without corrupt lines."""
    timings = CsvTable(folder / FILE_NAME).parse(_parse_timing)
    return [timing for timing in timings if timing.device == device_name()]


def measure(
    folder: Path,
    plan: Plan,
    on_message: OnMessage,
    layer_types: Iterable[LayerType] = LAYER_TYPES,
    measure_missing: bool = True,
) -> list[Timing]:
    """Measures the timings of a plan that `folder` lacks, stores them size by size, and returns all.

    Raises:
        T2TError: timings are missing and not to be measured.
        OSError: `folder` cannot be written.
    """
    to_measure = {size: list(layer_types) for size in plan.sizes}
    for timing in read_timings(folder):
        if timing.size in to_measure:
            to_measure[timing.size] = [t for t in to_measure[timing.size] if t.name != timing.layer]
    missing = {size: types for size, types in to_measure.items() if types}
    if missing and not measure_missing:
        raise T2TError(
            f"{folder / FILE_NAME}: {len(missing)} of {len(to_measure)} sizes were not measured on this "
            "device: leave out --norun to measure them"
        )
    folder.mkdir(parents=True, exist_ok=True)
    table, columns = CsvTable(folder / FILE_NAME), [field.name for field in dataclasses.fields(Timing)]
    start, done = time.monotonic(), 0
    for size, types in missing.items():
        left = _seconds_left(time.monotonic() - start, done, sum(map(_work, missing)))
        on_message(f"measuring {len(types)} layer types at n = {size[0]}, d = {size[1]}{left}")
        timings = _measure_size(types, size, plan)
        table.write([*table.rows(), *map(dataclasses.asdict, timings)], columns)
        done += _work(size)
    return [timing for timing in read_timings(folder) if timing.size in to_measure]


def _measure_size(types: list[LayerType], size: Size, plan: Plan) -> list[Timing]:
    """Lets the layer types take turns, so that other work on the machine affects all of them alike."""
    x = tf.random.stateless_normal((1, *size), seed=(1, 2))
    functions = {layer_type.name: traced(layer_type.make(size[1]), *size) for layer_type in types}
    calls = {name: _calls_per_turn(function, x, plan.turn) for name, function in functions.items()}
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(plan.rounds):
        for name, function in functions.items():
            seconds[name].append(_seconds_per_call(function, x, calls[name]))
    return [_timing(name, size, functions[name], seconds[name]) for name in functions]


def _timing(name: str, size: Size, function: Any, seconds: list[float]) -> Timing:
    lower, median, upper = (1000 * s for s in quantiles(seconds, n=4, method="inclusive"))
    return Timing(name, *size, *count(function), median, lower, upper, len(seconds), device_name())


def _calls_per_turn(function: Any, x: Any, turn: float) -> int:
    """Times the second call, since the first one initialises, and returns how many calls fill a turn."""
    _seconds_per_call(function, x, 1)
    return max(1, int(turn / _seconds_per_call(function, x, 1)))


def _seconds_per_call(function: Any, x: Any, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function(x)
    tf.test.experimental.sync_devices()
    return (time.perf_counter() - start) / calls


def _work(size: Size) -> int:
    """Returns a number proportional to a size's estimated duration, which has a lower bound."""
    return TURNS + size[0] * size[1]


def _seconds_left(seconds: float, done: int, total: int) -> str:
    return f", about {seconds / done * (total - done):.0f} s left" if done else ""


def _parse_timing(cells: dict[str, str]) -> Timing:
    types: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float}
    return Timing(**{f.name: types[str(f.type)](cells[f.name]) for f in dataclasses.fields(Timing)})
