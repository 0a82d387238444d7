"""Pictures of measurements.

    python benchmarks/plots.py curves --output=curves.png \\
        --panel "Multi30k, dev" "from scratch=DIR" "fine-tuned=DIR" "mixed=DIR:bleu/captions" \\
        --panel "newstest2013" "general=DIR"
    python benchmarks/plots.py speed --results=speed.json --output=speed.png

- curves: dev scores of several trainings against target tokens or minutes, a panel for each --panel. A run is
  NAME=OUTPUT_DIR, or NAME=OUTPUT_DIR:SCORE where dev.csv has it under another name than bleu.
- speed: decode_speed.py's results, BLEU against sentences per second, and against milliseconds. Colours are
  engines, shapes are models, numbers lead to the legend.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from t2t_revival.curve_files import DEV, csv_path, read_segments
from t2t_revival.metrics.metric import metric_of

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # of Okabe and Ito
ENGINES = {"saved_model": COLORS[0], "ctranslate2": COLORS[1], "litert": COLORS[4], "t2t-decoder": COLORS[5]}
MARKERS = "osD^v"  # of models, in the order of the results
AXES = {  # label, and factor of the column
    "target_tokens": ("target tokens (millions)", 1e-6),
    "seconds": ("minutes, evaluations included", 1 / 60),
}


class Point(NamedTuple):
    """Medians of a contestant: sentences per second, and milliseconds."""

    name: str
    model: str
    engine: str
    bleu: float
    sentences: float
    milliseconds: float


def read_curve(run: str, column: str) -> tuple[str, str, list[float], list[float]]:
    """Reads a run's newest comparable scores: its name, the metric's, their places on the axis, scores."""
    name, _, place = run.partition("=")
    folder, _, score = place.partition(":")
    if not folder:
        raise ValueError(f"{run!r} is not NAME=OUTPUT_DIR")
    score = score or "bleu"
    segments = read_segments(Path(folder), DEV, score)
    if not segments:
        raise ValueError(f"{csv_path(Path(folder), DEV)} has no {score}")
    rows = segments[-1].rows
    x = [AXES[column][1] * row[column] for row in rows]
    return name, metric_of(score).name, x, [row[score] for row in rows]


def points(results: Sequence[dict[str, Any]], batch: str) -> list[Point]:
    """Reads the results of the contestants that have finished with a batch size and with single sentences."""
    found = []
    for result in results:
        if not (windows := result["windows"].get(batch)) or not result["milliseconds"]:
            continue
        model, _, contestant = result["name"].rpartition("/")
        engine = next(engine for engine in ENGINES if contestant.startswith(engine))
        speed = median(window["sentences"] / window["seconds"] for window in windows)
        latency = median(result["milliseconds"])
        found.append(Point(result["name"], model, engine, result["bleu"], speed, latency))
    return found


def draw_curves(args: Namespace) -> Figure:
    """Draws a panel for each group of runs, in which a run has the same colour everywhere."""
    panels = [(title, [read_curve(run, args.against) for run in runs]) for title, *runs in args.panel]
    names = list(dict.fromkeys(name for _, curves in panels for name, *_ in curves))
    figure = Figure((5 * len(panels), 4.2), layout="constrained")
    for axes, (title, curves) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for name, _, x, scores in curves:
            color = COLORS[names.index(name) % len(COLORS)]
            axes.plot(x, scores, "o-", color=color, markersize=3, label=name)
        scores = ", ".join(dict.fromkeys(metric.upper() for _, metric, *_ in curves))
        axes.set(title=title, xlabel=AXES[args.against][0], ylabel=scores, xlim=(0, None))
    return figure


def draw_speed(args: Namespace) -> Figure:
    """Draws BLEU against both speeds, on logarithmic axes."""
    found = points(json.loads(args.results.read_text(encoding="utf-8"))["results"], args.batch_size)
    if not found:
        raise ValueError(f"{args.results} has no results of batches of {args.batch_size}")
    models = list(dict.fromkeys(point.model for point in found))
    figure = Figure((12, 7.5), layout="constrained")
    figure.suptitle("faster is to the right, better is up", fontsize=10)
    many, single = figure.subplots(1, 2, sharey=True)
    many.set(xlabel=f"sentences/s, batches of {args.batch_size}", ylabel="BLEU")
    single.set(xlabel="ms for a single sentence, median")
    for number, point in enumerate(found, 1):
        marker = MARKERS[models.index(point.model) % len(MARKERS)]
        color = ENGINES[point.engine]
        for axes, x in ((many, point.sentences), (single, point.milliseconds)):
            axes.plot(x, point.bleu, marker, color=color, markersize=9, label=f"{number}  {point.name}")
            axes.annotate(str(number), (x, point.bleu), (6, 5), textcoords="offset points", fontsize=9)
    for axes in (many, single):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter("{x:g}")
    single.invert_xaxis()
    return figure


def write(figure: Figure, output: Path) -> None:
    """Writes a figure with grids, and with a legend of the lines of all its panels."""
    for axes in figure.axes:
        axes.grid(alpha=0.3, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    lines = {line.get_label(): line for axes in figure.axes for line in axes.get_lines()}
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(output, dpi=130)


def main(argv: Sequence[str] | None = None) -> None:
    """Draws the picture that the flags ask for."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    curves, speed = commands.add_parser("curves"), commands.add_parser("speed")
    curves.set_defaults(draw=draw_curves)
    curves.add_argument("--panel", nargs="+", action="append", required=True, help="its title, then its runs")
    curves.add_argument("--against", choices=tuple(AXES), default="target_tokens", help="default %(default)s")
    speed.set_defaults(draw=draw_speed)
    speed.add_argument("--results", type=Path, required=True, help="JSON file of decode_speed.py")
    speed.add_argument("--batch_size", default="32", help="batch size to show; default 32")
    for command in (curves, speed):
        command.add_argument("--output", type=Path, required=True, help="PNG file to write")
    args = parser.parse_args(argv)
    try:
        write(args.draw(args), args.output)
    except (OSError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
