"""Pictures of a training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from t2t_revival.errors import T2TError
from t2t_revival.files import writing
from t2t_revival.training.curve_files import DEV, SMOOTHED, TRAIN, Segment, read_curve, read_segments
from t2t_revival.training.evaluations import Evaluation

FILE_NAME = "learning_curve.png"
TRAIN_COLOUR, DEV_COLOUR, DECODED_COLOUR = "#7a9cc6", "#1f4e8c", "#c0562f"
FIGURE: dict[str, Any] = {"figsize": (8, 4.5), "dpi": 120, "layout": "constrained"}
DECODED = {"bleu": "BLEU", "f1": "F1"}  # scores of decoded outputs, as people write them


def draw_learning_curve(output_dir: Path, title: str) -> Path:
    """Draws loss, and BLEU or F1 on dev, against target tokens seen; lines break where the data changed.

    Args:
        output_dir: of a training; its CSV files are read.
        title: above the picture.

    Returns:
        The PNG file, in output_dir.

    Raises:
        T2TError: there is no curve.
    """
    train = read_curve(output_dir, TRAIN)
    if not train:
        raise T2TError(f"no learning curve in {output_dir}")
    from matplotlib.figure import Figure

    figure = Figure(**FIGURE)
    loss_axes = figure.add_subplot()
    lines = _draw_segments(
        loss_axes, read_segments(output_dir, TRAIN, "loss"), "loss", "", TRAIN_COLOUR, "train loss"
    )
    if smoothed := [row for row in train if "loss" not in row]:  # written by an earlier version
        lines += loss_axes.plot(
            *_points(smoothed, SMOOTHED), ":", color=TRAIN_COLOUR, label="train loss, label-smoothed"
        )
    lines += _draw_segments(
        loss_axes, read_segments(output_dir, DEV, "loss"), "loss", "o", DEV_COLOUR, "dev loss"
    )
    loss_axes.set_xlabel("target tokens seen (millions)")
    loss_axes.set_ylabel("nats per target token")
    loss_axes.set_title(title)
    loss_axes.grid(alpha=0.3)
    for metric, name in DECODED.items():
        if segments := read_segments(output_dir, DEV, metric):
            axes = loss_axes.twinx()
            axes.set_ylabel(name)
            label = f"dev {name} (right axis)"
            lines += _draw_segments(axes, segments, metric, "s", DECODED_COLOUR, label)
            axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.0))
    figure.legend(handles=lines, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    path = output_dir / FILE_NAME
    with writing(path) as file:
        figure.savefig(file, format="png")
    return path


def draw_evaluations(evaluations: list[Evaluation], path: Path, title: str) -> Path:
    """Draws loss, and BLEU or F1, of each checkpoint against its step; averages as single points.

    Args:
        evaluations: at least one.
        path: of the PNG file.
        title: above the picture.

    Returns:
        The file.
    """
    from matplotlib.figure import Figure

    figure = Figure(**FIGURE)
    axes = figure.add_subplot()
    axes.set_xlabel("step")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    lines = _draw_scores(axes, evaluations, "loss", "nats per target token", "loss", DEV_COLOUR)
    for metric, name in DECODED.items():
        if any(metric in evaluation.scores for evaluation in evaluations):
            label = f"{name} (right axis)"
            lines += _draw_scores(axes.twinx(), evaluations, metric, name, label, DECODED_COLOUR)
    axes.legend(handles=lines, loc="center right", frameon=False)
    with writing(path) as file:
        figure.savefig(file, format="png")
    return path


def _draw_scores(
    axes: Any, evaluations: list[Evaluation], metric: str, unit: str, label: str, colour: str
) -> list[Any]:
    axes.set_ylabel(unit)
    lines = []
    for averaged, style, of in ((False, "o-", ""), (True, "*", ", average")):
        points = [
            (e.step, e.scores[metric]) for e in evaluations if e.averaged == averaged and metric in e.scores
        ]
        if points:
            steps, values = zip(*points, strict=True)
            size = 9 if averaged else 3
            lines += axes.plot(steps, values, style, color=colour, markersize=size, label=label + of)
    return lines


def _draw_segments(
    axes: Any, segments: list[Segment], score: str, marker: str, colour: str, label: str
) -> list[Any]:
    """Draws each segment as a line of its own, those of other data than the last one's dashed and paler.

    Returns:
        A line of each kind, for the legend.
    """
    lines: dict[str, Any] = {}
    for segment in segments:
        comparable = segment.measured_on == segments[-1].measured_on
        style = {"linestyle": "-", "alpha": 1.0} if comparable else {"linestyle": "--", "alpha": 0.5}
        other = "measured otherwise" if score in DECODED else "on other data"
        name = label if comparable else f"{label}, {other}"
        (lines[name],) = axes.plot(
            *_points(segment.rows, score), marker=marker, markersize=3, color=colour, label=name, **style
        )
    return list(lines.values())


def _points(rows: list[dict[str, float]], name: str) -> tuple[list[float], list[float]]:
    measured = [row for row in rows if name in row]
    return [row["target_tokens"] / 1e6 for row in measured], [row[name] for row in measured]
