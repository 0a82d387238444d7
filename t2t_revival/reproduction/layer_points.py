"""Table 1: the measured points, each a layer type at one n and d. What is measured is kept."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

import tensorflow as tf

from t2t_revival.data.workers import cores
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.reproduction.layers import LAYER_TYPES, LayerType
from t2t_revival.reproduction.operations import count
from t2t_revival.reproduction.paths import traced
from t2t_revival.training.csv_rows import read_rows, write_rows

FILE_NAME = "layer_costs.csv"
TURNS = 512 * 512  # n·d at which calls take as long again as the turns of the smallest size

Report = Callable[[str], None]
Size = tuple[int, int]  # n and d


@dataclass(frozen=True)
class Plan:
    """What is measured, and how long.

    Attributes:
        lengths: n, at `channels_held` channels.
        channels: d, at `length_held` positions.
        channels_held: d while n changes.
        length_held: n while d changes.
        rounds: in each of which every layer type has its turn.
        turn: seconds of one turn, in which a layer is called as often as it can, at least once.
    """

    lengths: tuple[int, ...]
    channels: tuple[int, ...]
    channels_held: int
    length_held: int
    rounds: int
    turn: float

    @property
    def of_lengths(self) -> list[Size]:
        """The sizes that differ in n."""
        return [(length, self.channels_held) for length in self.lengths]

    @property
    def of_channels(self) -> list[Size]:
        """The sizes that differ in d."""
        return [(self.length_held, channels) for channels in self.channels]

    @property
    def sizes(self) -> list[Size]:
        """All of them, the smallest first."""
        return sorted({*self.of_lengths, *self.of_channels}, key=lambda size: (_work(size), size))


PLANS = {
    "cpu": Plan((64, 128, 256, 512, 1024, 2048), (64, 128, 256, 512), 512, 512, 15, 0.1),
    "paper": Plan((128, 256, 512, 1024, 2048, 4096), (128, 256, 512, 1024, 2048), 512, 1024, 15, 0.2),
}


@dataclass(frozen=True)
class Point:
    """A layer type at one size, as measured.

    Attributes:
        layer: its type's name.
        length: n, positions.
        channels: d.
        operations: of one call; see `operations.Cost`.
        sequential: of one call; see `operations.Cost`.
        milliseconds: of one call, the median of all rounds.
        lower: the first quartile.
        upper: the third quartile.
        rounds: how many there were.
        device: what computed.
    """

    layer: str
    length: int
    channels: int
    operations: int
    sequential: int
    milliseconds: float
    lower: float
    upper: float
    rounds: int
    device: str

    @property
    def size(self) -> Size:
        """n and d."""
        return self.length, self.channels


def plan_of_scale(name: str) -> Plan:
    """What is measured at a scale.

    Raises:
        T2TError: there is none.
    """
    if name not in PLANS:
        raise T2TError(did_you_mean(name, PLANS, "scale"))
    return PLANS[name]


def device() -> str:
    """What computes here, in words."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        return str(tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU"))
    threads = tf.config.threading.get_intra_op_parallelism_threads() or cores()
    return f"CPU, {cores()} cores, {threads} for one operation"


def read_points(folder: Path) -> list[Point]:
    """What was measured on this device; lines that are damaged are left out."""
    points = filter(None, map(_point, read_rows(folder / FILE_NAME)))
    return [point for point in points if point.device == device()]


def measure(
    folder: Path,
    plan: Plan,
    report: Report,
    layer_types: Iterable[LayerType] = LAYER_TYPES,
    measuring: bool = True,
) -> list[Point]:
    """All points of a plan: those that `folder` has, and the others measured and put there, size by size.

    Raises:
        T2TError: some are missing, and are not to be measured.
        OSError: `folder` cannot be written.
    """
    wanted = {size: list(layer_types) for size in plan.sizes}
    for point in read_points(folder):
        if point.size in wanted:
            wanted[point.size] = [t for t in wanted[point.size] if t.name != point.layer]
    missing = {size: types for size, types in wanted.items() if types}
    if missing and not measuring:
        raise T2TError(
            f"{folder / FILE_NAME}: {len(missing)} of {len(wanted)} sizes were not measured on this device: "
            "measure them, without --norun"
        )
    folder.mkdir(parents=True, exist_ok=True)
    began, done = time.monotonic(), 0
    for size, types in missing.items():
        left = _seconds_left(time.monotonic() - began, done, sum(map(_work, missing)))
        report(f"measuring {len(types)} layer types at n = {size[0]}, d = {size[1]}{left}")
        _add(folder, _measure_size(types, size, plan))
        done += _work(size)
    return [point for point in read_points(folder) if point.size in wanted]


def _measure_size(types: list[LayerType], size: Size, plan: Plan) -> list[Point]:
    """The types take turns, so that whatever else the machine does meets all of them alike."""
    x = tf.random.stateless_normal((1, *size), seed=(1, 2))
    functions = {layer_type.name: traced(layer_type.make(size[1]), *size) for layer_type in types}
    calls = {name: _calls(function, x, plan.turn) for name, function in functions.items()}
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(plan.rounds):
        for name, function in functions.items():
            times[name].append(_seconds(function, x, calls[name]))
    return [_measured(name, size, functions[name], times[name]) for name in functions]


def _measured(name: str, size: Size, function: Any, seconds: list[float]) -> Point:
    lower, middle, upper = (1000 * s for s in quantiles(seconds, n=4, method="inclusive"))
    return Point(name, *size, *count(function), middle, lower, upper, len(seconds), device())


def _calls(function: Any, x: Any, turn: float) -> int:
    """How many calls fill a turn, by the second call: the first prepares."""
    _seconds(function, x, 1)
    return max(1, int(turn / _seconds(function, x, 1)))


def _seconds(function: Any, x: Any, calls: int) -> float:
    """Of one of so many calls."""
    began = time.perf_counter()
    for _ in range(calls):
        function(x)
    tf.test.experimental.sync_devices()
    return (time.perf_counter() - began) / calls


def _work(size: Size) -> int:
    """About as the time that a size takes grows: turns have a least length."""
    return TURNS + size[0] * size[1]


def _seconds_left(seconds: float, done: int, all_work: int) -> str:
    return f", about {seconds / done * (all_work - done):.0f} s left" if done else ""


def _add(folder: Path, points: list[Point]) -> None:
    path = folder / FILE_NAME
    columns = [field.name for field in dataclasses.fields(Point)]
    write_rows(path, [*read_rows(path), *map(dataclasses.asdict, points)], columns)


def _point(cells: dict[str, str]) -> Point | None:
    """A row of the file; None: it is none."""
    kinds: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float}
    try:
        return Point(**{f.name: kinds[str(f.type)](cells[f.name]) for f in dataclasses.fields(Point)})
    except (KeyError, TypeError, ValueError):
        return None
