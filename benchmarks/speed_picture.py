"""Picture of decode_speed.py's results: BLEU against sentences per second, and against milliseconds.

    python benchmarks/speed_picture.py --results=speed.json --output=speed.png

Colours are engines, shapes are models, numbers lead to the legend.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

COLORS = {  # of Okabe and Ito, which colour-blind people can tell apart
    "saved_model": "#0072B2",
    "t2t-decoder": "#56B4E9",
    "litert": "#E69F00",
    "ctranslate2": "#D55E00",
    "opennmt-tf": "#009E73",
    "tensor2tensor": "#CC79A7",
}
MARKERS = "osD^v"  # of models, in the order of the results


class Point(NamedTuple):
    """Medians of a contestant."""

    name: str  # with the number of its sentences where others translated more
    model: str
    engine: str
    bleu: float
    sentences: float  # per second
    milliseconds: float


def points(results: dict[str, Any], batch: str) -> list[Point]:
    """Reads the results of a batch size."""
    found = []
    finished = {
        name: result
        for name, result in results.items()
        if result["windows"].get(batch) and result["milliseconds"]
    }
    most = max((result["windows"][batch][0]["sentences"] for result in finished.values()), default=0)
    for name, result in finished.items():
        windows = result["windows"][batch]
        count = windows[0]["sentences"]
        label = name if count == most else f"{name} (the first {count:,} sentences)"
        model, _, contestant = name.rpartition("/")
        engine = next(engine for engine in COLORS if contestant.startswith(engine))
        speed = median(window["sentences"] / window["seconds"] for window in windows)
        found.append(Point(label, model, engine, result["bleu"], speed, median(result["milliseconds"])))
    return found


def draw(found: Sequence[Point], batch: str, output: Path) -> None:
    """Writes the picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator

    models = list(dict.fromkeys(point.model for point in found))
    figure, panels = plt.subplots(1, 2, figsize=(12, 7.5), sharey=True, layout="constrained")
    for panel, field, label in (
        (panels[0], "sentences", f"sentences/s, batches of {batch}"),
        (panels[1], "milliseconds", "ms for a single sentence, median"),
    ):
        for number, point in enumerate(found, 1):
            place = getattr(point, field), point.bleu
            panel.plot(
                *place,
                MARKERS[models.index(point.model) % len(MARKERS)],
                color=COLORS[point.engine],
                markersize=9,
                label=f"{number}  {point.name}",
            )
            panel.annotate(str(number), place, xytext=(6, 5), textcoords="offset points", fontsize=9)
        panel.set_xscale("log")
        panel.set_xlabel(label)
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.xaxis.set_major_formatter("{x:g}")
        panel.grid(alpha=0.3, linewidth=0.5)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("BLEU")
    panels[1].invert_xaxis()
    figure.suptitle("faster is to the right, better is up", fontsize=10)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(output, dpi=130)


def main(argv: Sequence[str] | None = None) -> int:
    """Draws the picture that the flags ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--results", type=Path, required=True, help="JSON file of decode_speed.py")
    parser.add_argument("--batch_size", default="32", help="batch size to show; default 32")
    parser.add_argument("--output", type=Path, required=True, help="PNG file to write")
    args = parser.parse_args(argv)
    try:
        results = json.loads(args.results.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"error: {args.results}: {error}", file=sys.stderr)
        return 1
    found = points(results, args.batch_size)
    if not found:
        print(f"error: {args.results} has no results of batches of {args.batch_size}", file=sys.stderr)
        return 1
    draw(found, args.batch_size, args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
