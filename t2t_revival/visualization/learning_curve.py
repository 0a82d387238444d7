"""Learning curves of a training, as PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from t2t_revival.curve_files import DEV, TRAIN, Segment, read_curve, read_segments
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.checkpoint_evaluation import Evaluation, drawn_score
from t2t_revival.metrics.metric import metric_of, title_of
from t2t_revival.visualization import png_figure

FILE_NAME = "learning_curve.png"
TRAIN_COLOUR, DEV_COLOUR, DECODED_COLOUR = "#7a9cc6", "#1f4e8c", "#c0562f"
SIZE = (8, 4.5)  # inches


def draw_learning_curve(output_dir: Path, title: str) -> Path:
    """Draws loss, and BLEU or F1 on dev, against target tokens; lines break where the data changed.

    Returns the PNG file, in output_dir.

    Raises:
        T2TError: there is no curve.
    """
    segments = read_segments(output_dir, TRAIN, "loss")
    if not segments:
        raise T2TError(f"{output_dir} has no learning curve ({TRAIN}.csv)")
    path = output_dir / FILE_NAME
    with png_figure(path, *SIZE) as figure:
        loss_axes = figure.add_subplot()
        lines = _draw_segments(loss_axes, segments, "loss", "", TRAIN_COLOUR, "train loss")
        segments = read_segments(output_dir, DEV, "loss")
        lines += _draw_segments(loss_axes, segments, "loss", "o", DEV_COLOUR, "dev loss")
        loss_axes.set_xlabel("target tokens (millions)")
        loss_axes.set_ylabel("loss (nats per target token)")
        loss_axes.set_title(title)
        loss_axes.grid(alpha=0.3)
        if score := drawn_score(output_dir, read_curve(output_dir, DEV)):
            axes = loss_axes.twinx()
            axes.set_ylabel(title_of(score))
            segments, label = read_segments(output_dir, DEV, score), f"dev {title_of(score)} (right axis)"
            lines += _draw_segments(axes, segments, score, "s", DECODED_COLOUR, label)
            axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.0))
        figure.legend(handles=lines, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return path


def draw_evaluations(evaluations: list[Evaluation], path: Path, title: str, score: str = "") -> Path:
    """Draws loss, and another score, of each checkpoint against its step; averages are single points.

    Returns the PNG file, which is `path`.
    """
    with png_figure(path, *SIZE) as figure:
        axes = figure.add_subplot()
        axes.set_xlabel("step")
        axes.set_title(title)
        axes.grid(alpha=0.3)
        lines = _draw_scores(axes, evaluations, "loss", "loss (nats per target token)", "loss", DEV_COLOUR)
        if score:
            label = f"{title_of(score)} (right axis)"
            lines += _draw_scores(axes.twinx(), evaluations, score, title_of(score), label, DECODED_COLOUR)
        axes.legend(handles=lines, loc="center right", frameon=False)
    return path


def _draw_scores(
    axes: Any, evaluations: list[Evaluation], metric: str, y_label: str, label: str, colour: str
) -> list[Any]:
    axes.set_ylabel(y_label)
    lines = []
    for averaged, style, suffix in ((False, "o-", ""), (True, "*", ", average")):
        points = [
            (e.step, e.scores[metric]) for e in evaluations if e.averaged == averaged and metric in e.scores
        ]
        if points:
            steps, values = zip(*points, strict=True)
            size = 9 if averaged else 3
            lines += axes.plot(steps, values, style, color=colour, markersize=size, label=label + suffix)
    return lines


def _draw_segments(
    axes: Any, segments: list[Segment], score: str, marker: str, colour: str, label: str
) -> list[Any]:
    """Draws each segment as a line; segments on other data than the last one's are dashed and paler.

    Returns:
        One line of each style, for the legend.
    """
    lines: dict[str, Any] = {}
    for segment in segments:
        comparable = segment.measured_on == segments[-1].measured_on
        style = {"linestyle": "-", "alpha": 1.0} if comparable else {"linestyle": "--", "alpha": 0.5}
        difference = "other settings" if metric_of(score).outputs else "other data"
        name = label if comparable else f"{label}, {difference}"
        tokens = [row["target_tokens"] / 1e6 for row in segment.rows]
        values = [row[score] for row in segment.rows]
        (lines[name],) = axes.plot(
            tokens, values, marker=marker, markersize=3, color=colour, label=name, **style
        )
    return list(lines.values())
