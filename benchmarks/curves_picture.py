"""Picture of the dev scores of several trainings against target tokens or minutes, a panel for each --panel.

    python benchmarks/curves_picture.py --output=curves.png \\
        --panel "Multi30k, dev" "from scratch=DIR" "fine-tuned=DIR" "mixed=DIR:bleu/captions" \\
        --panel "newstest2013" "general=DIR"

A run is NAME=OUTPUT_DIR, or NAME=OUTPUT_DIR:SCORE where dev.csv has it under another name than bleu.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from t2t_revival.curve_files import DEV, csv_path, read_segments
from t2t_revival.metrics.metric import metric_of

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # of Okabe and Ito
AXES = {  # label, and factor of the column
    "target_tokens": ("target tokens (millions)", 1e-6),
    "seconds": ("minutes, evaluations included", 1 / 60),
}


class Curve(NamedTuple):
    """The newest comparable dev scores of a run."""

    name: str
    metric: str
    x: list[float]
    scores: list[float]


def read(run: str, column: str) -> Curve:
    """Reads the curve of a run, NAME=OUTPUT_DIR or NAME=OUTPUT_DIR:SCORE.

    Raises:
        ValueError: it is not written so, or the folder has no such scores.
    """
    name, is_run, place = run.partition("=")
    folder, _, score = place.partition(":")
    score = score or "bleu"
    if not is_run or not folder:
        raise ValueError(f"{run!r} is not NAME=OUTPUT_DIR")
    segments = read_segments(Path(folder), DEV, score)
    if not segments:
        raise ValueError(f"{csv_path(Path(folder), DEV)} has no {score}")
    rows = segments[-1].rows
    x = [AXES[column][1] * row[column] for row in rows]
    return Curve(name, metric_of(score).name, x, [row[score] for row in rows])


def draw(panels: Sequence[tuple[str, Sequence[Curve]]], column: str, output: Path) -> None:
    """Writes the picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(curve.name for _, curves in panels for curve in curves))
    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 4.2), layout="constrained")
    for panel, (title, curves) in zip([axes] if len(panels) == 1 else axes, panels, strict=True):
        for curve in curves:
            color = COLORS[names.index(curve.name) % len(COLORS)]
            panel.plot(curve.x, curve.scores, "o-", color=color, markersize=3, label=curve.name)
        panel.set_title(title, fontsize=11)
        panel.set_xlabel(AXES[column][0])
        panel.set_ylabel(", ".join(dict.fromkeys(curve.metric.upper() for curve in curves)))
        panel.set_xlim(left=0)
        panel.grid(alpha=0.3, linewidth=0.5)
        panel.spines[["top", "right"]].set_visible(False)
    lines = {line.get_label(): line for panel in figure.axes for line in panel.get_lines()}
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    figure.savefig(output, dpi=130)


def main(argv: Sequence[str] | None = None) -> int:
    """Draws the picture that the flags ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "--panel", nargs="+", action="append", required=True, help="its title, then its runs", metavar="TEXT"
    )
    parser.add_argument("--against", choices=tuple(AXES), default="target_tokens", help="default %(default)s")
    parser.add_argument("--output", type=Path, required=True, help="PNG file to write")
    args = parser.parse_args(argv)
    try:
        panels = [(title, [read(run, args.against) for run in runs]) for title, *runs in args.panel]
        draw(panels, args.against, args.output)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
