"""Curves, and their picture: they survive crashes, resumptions, and scores that come and go."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from t2t_revival import T2TError
from t2t_revival.curve_files import (
    DATA,
    DECODING,
    DEV,
    best_row,
    comparable_rows,
    csv_path,
    is_falling,
    read_curve,
    read_segments,
)
from t2t_revival.training.monitor import Curves
from t2t_revival.training.state import Seen
from t2t_revival.utils.score_events import ScoreEvents
from t2t_revival.visualization.learning_curve import _draw_segments


def add(
    folder: Path, start: int, *points: tuple[int, dict[str, float]], data: str = "", decoding: str = ""
) -> None:
    with Curves(folder, start, {DEV: {DATA: data, DECODING: decoding}}) as curves:
        for step, scores in points:
            curves.add(DEV, step, Seen(target_tokens=10 * step), scores)


def test_later_points_are_dropped_on_resumption(tmp_path: Path) -> None:
    add(tmp_path, 0, (1, {"loss": 3.0}), (2, {"loss": 2.0}), (3, {"loss": 1.0}))
    add(tmp_path, 2, (3, {"loss": 1.5}))
    assert [row["loss"] for row in read_curve(tmp_path, DEV)] == [3.0, 2.0, 1.5]
    add(tmp_path, 0)
    assert not csv_path(tmp_path, DEV).exists()


def test_scores_may_come_and_go(tmp_path: Path) -> None:
    add(tmp_path, 0, (1, {"loss": 3.0}))
    add(tmp_path, 1, (2, {"loss": 2.0, "bleu": 9.0}))
    add(tmp_path, 2, (3, {"loss": 1.0}))
    assert [row.get("bleu") for row in read_curve(tmp_path, DEV)] == [None, 9.0, None]
    assert [row["loss"] for row in read_curve(tmp_path, DEV)] == [3.0, 2.0, 1.0]


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """Dev scores of data that changes twice, in the end to the first; then BLEU is of other sentences."""
    add(tmp_path, 0, (1, {"loss": 3.0, "bleu": 9.0}), (2, {"loss": 1.0}), data="12345678", decoding="200")
    add(tmp_path, 2, (3, {"loss": 0.5, "bleu": 30.0}), data="1e234567", decoding="200")
    add(tmp_path, 3, (4, {"loss": 2.5, "bleu": 7.0}), data="12345678", decoding="200")
    add(tmp_path, 4, (5, {"loss": 1.5, "bleu": 8.0}), data="12345678", decoding="50")
    return tmp_path


def test_a_curve_is_cut_where_the_data_or_the_way_of_decoding_changes(changed: Path) -> None:
    losses, bleu = (read_segments(changed, DEV, score) for score in ("loss", "bleu"))
    assert [[row["step"] for row in segment.rows] for segment in losses] == [[1, 2], [3], [4, 5]]
    assert [segment.measured_on for segment in losses] == ["12345678", "1e234567", "12345678"]
    assert [[row["step"] for row in segment.rows] for segment in bleu] == [[1], [3], [4], [5]]
    assert len({segment.measured_on for segment in bleu}) == 3
    assert not {DATA, DECODING} & read_curve(changed, DEV)[0].keys(), "digits that are no numbers"


def test_the_best_and_the_comparable_are_of_one_data(changed: Path) -> None:
    now = {DATA: "12345678", DECODING: "50"}
    assert [row["step"] for row in comparable_rows(changed, DEV, "loss", now)] == [1, 2, 4, 5]
    assert [row["step"] for row in comparable_rows(changed, DEV, "bleu", now)] == [5]
    best = {score: best_row(changed, score) for score in ("loss", "bleu", "f1")}
    assert [row and row["step"] for row in best.values()] == [2, 5, None]


def test_a_line_cut_short_by_a_crash_is_passed_over(tmp_path: Path) -> None:
    add(tmp_path, 0, (1, {"loss": 3.0}), (2, {"loss": 2.0}))
    path = csv_path(tmp_path, DEV)
    for rest in ("3", "3,3", "3,30,1.0\n", "\x00"):
        path.write_text(path.read_text(encoding="utf-8") + rest, encoding="utf-8")
        assert [row["loss"] for row in read_curve(tmp_path, DEV) if "loss" in row] == [3.0, 2.0]
        add(tmp_path, 2)
        assert [row["loss"] for row in read_curve(tmp_path, DEV)] == [3.0, 2.0]


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ScoreEvents, "add", fail)
    with pytest.raises(T2TError, match=f"cannot write curves in {tmp_path}: No space left on device; the"):
        add(tmp_path, 0, (1, {"loss": 3.0}))
    monkeypatch.setattr(ScoreEvents, "_write", fail)
    with pytest.raises(T2TError, match=f"cannot write curves in {tmp_path}: No space left on device; the"):
        add(tmp_path, 0)


def test_what_cannot_be_closed_hides_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ScoreEvents, "close", fail)
    add(tmp_path, 0, (1, {"loss": 3.0}))


@pytest.mark.parametrize(
    ("losses", "count", "falling"),
    [
        ([6.9, 5.5, 4.2], 5, True),
        ([6.9, 5.5, 4.2, 2.01, 2.0, 1.99], 3, False),
        ([6.9, 5.5, 4.2, 2.01, 2.0, 1.99], 4, True),
        ([2.0, 2.1, 2.2], 5, False),
        ([5.0], 5, False),
        ([0.14, 0.12, 0.11], 3, False),
    ],
)
def test_the_loss_over_the_checkpoints_of_an_average(
    tmp_path: Path, losses: list[float], count: int, falling: bool
) -> None:
    rows = [f"{step},{step * 9},1.0,{loss},d,e" for step, loss in enumerate(losses, start=1)]
    (tmp_path / "dev.csv").write_text(
        "\n".join(["step,target_tokens,seconds,loss,data,decoding", *rows, ""]), encoding="utf-8"
    )
    assert is_falling(tmp_path, count) == falling


def test_no_evaluations(tmp_path: Path) -> None:
    assert not is_falling(tmp_path, 5)


HEADER = "step,target_tokens,seconds,loss,bleu,data,decoding\n"


def test_lines_of_different_data_are_apart_and_told_apart(tmp_path: Path) -> None:
    rows = ("1,10,1,5,2,a,x", "2,20,1,4,3,a,x", "3,30,1,6,1,b,x", "4,40,1,3,4,a,x", "5,50,1,2,5,a,y")
    (tmp_path / "dev.csv").write_text(HEADER + "\n".join(rows) + "\n")
    axes = Figure().add_subplot()
    shown = _draw_segments(axes, read_segments(tmp_path, DEV, "loss"), "loss", "o", "b", "dev loss")
    assert [line.get_ydata().tolist() for line in axes.get_lines()] == [[5, 4], [6], [3, 2]]
    assert [line.get_linestyle() for line in axes.get_lines()] == ["-", "--", "-"]
    assert [line.get_label() for line in shown] == ["dev loss", "dev loss, other data"]
    shown = _draw_segments(axes, read_segments(tmp_path, DEV, "bleu"), "bleu", "s", "r", "dev BLEU")
    assert [line.get_label() for line in shown] == ["dev BLEU, other settings", "dev BLEU"]
