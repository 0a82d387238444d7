"""Rows of t2t-eval are kept, found, and replaced by newer ones of the same checkpoint."""

import math
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from t2t_revival import T2TError
from t2t_revival.evaluation.checkpoint_evaluation import Evaluations, drawn_score
from t2t_revival.visualization.learning_curve import draw_evaluations


def rows(folder: Path, settings: str = "s") -> list[tuple]:
    return [(row.step, row.checkpoint, row.scores) for row in Evaluations(folder, "dev", settings).rows]


def test_rows_come_back_by_step(tmp_path: Path) -> None:
    table = Evaluations(tmp_path, "dev", "s")
    table.add(20, tmp_path / "averaged" / "model.ckpt-20.npz", "c", {"loss": 1.0})
    table.add(20, tmp_path / "model.ckpt-20.npz", "b", {"loss": 1.5, "bleu": 31.25}, ["a"])
    table.add(3, tmp_path / "model.ckpt-3.npz", "a", {"loss": math.nan})
    found = Evaluations(tmp_path, "dev", "s")
    assert [(row.step, row.averaged) for row in found.rows] == [(3, False), (20, False), (20, True)]
    assert math.isnan(found.rows[0].scores["loss"])
    assert [row.scores for row in found.rows[1:]] == [{"loss": 1.5, "bleu": 31.25}, {"loss": 1.0}]
    assert found.find(tmp_path / "model.ckpt-20.npz", "b") == found.rows[1]
    assert found.find(tmp_path / "model.ckpt-20.npz", "c") is None
    (tmp_path / "eval-dev" / "20-b-s.txt").unlink()
    assert found.find(tmp_path / "model.ckpt-20.npz", "b") is None, "its outputs are compared"
    assert Evaluations(tmp_path, "test", "s").rows == []
    header = (tmp_path / "eval-dev.csv").read_text().splitlines()[0]
    assert header == "step,checkpoint,loss,bleu,weights,settings"


def test_other_weights_replace_a_row_and_other_settings_do_not(tmp_path: Path) -> None:
    path = tmp_path / "model.ckpt-20.npz"
    Evaluations(tmp_path, "dev", "s").add(20, path, "a", {"loss": 1.0})
    Evaluations(tmp_path, "dev", "other").add(20, path, "a", {"loss": 2.0})
    assert rows(tmp_path) == [(20, path.name, {"loss": 1.0})]
    assert rows(tmp_path, "other") == [(20, path.name, {"loss": 2.0})]
    Evaluations(tmp_path, "dev", "s").add(20, path, "b", {"loss": 3.0})
    assert rows(tmp_path) == [(20, path.name, {"loss": 3.0})]
    assert rows(tmp_path, "other") == [], "its weights are gone"


def test_outputs_are_kept_for_each_row_and_go_with_it(tmp_path: Path) -> None:
    path = tmp_path / "averaged" / "model.ckpt-20.npz"
    table = Evaluations(tmp_path, "dev", "s")
    table.add(20, path, "a", {"bleu": 1.0}, ["eins", "", "drei \u2028 vier"])
    table.add(20, tmp_path / "model.ckpt-20.npz", "b", {}, ["plain"])
    again = Evaluations(tmp_path, "dev", "s")
    assert again.outputs(again.rows[1]) == ["eins", "", "drei \u2028 vier"]
    assert (tmp_path / "eval-dev" / "20-b-s.txt").read_text() == "plain\n"
    again.add(20, path, "c", {"bleu": 2.0})
    assert [file.name for file in (tmp_path / "eval-dev").iterdir()] == ["20-b-s.txt"]


def test_lines_that_are_no_rows_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "model.ckpt-20.npz"
    Evaluations(tmp_path, "dev", "s").add(20, path, "a", {"loss": 1.0})
    file = tmp_path / "eval-dev.csv"
    file.write_text(file.read_text() + "x,y\n30,model.ckpt-30.npz,many,b,s\n40\n")
    assert rows(tmp_path) == [(20, path.name, {"loss": 1.0})]


def test_a_table_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(T2TError, match=r"cannot write .*eval-dev\.csv"):
        Evaluations(tmp_path / "nowhere", "dev", "s").add(1, tmp_path / "x", "a", {})
    (tmp_path / "eval-dev").write_text("no folder")
    with pytest.raises(T2TError, match=r"cannot write .*eval-dev/1-a-s\.txt"):
        Evaluations(tmp_path, "dev", "s").add(1, tmp_path / "x", "a", {}, ["a"])


@pytest.mark.parametrize(("decoded", "title"), [((), ""), (("bleu", "chrf"), "BLEU"), (("f1",), "F1")])
def test_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoded: tuple[str, ...], title: str
) -> None:
    """Its lines have the points of checkpoints, and the average's one."""
    shown = []

    def show(figure: Figure, *_: object, **__: object) -> None:
        shown.extend(
            (axes.get_ylabel(), len(line.get_xdata())) for axes in figure.axes for line in axes.get_lines()
        )

    monkeypatch.setattr(Figure, "savefig", show)
    table, scores = Evaluations(tmp_path, "dev", "s"), dict.fromkeys(("loss", *decoded), 1.0)
    for path in ("model.ckpt-1.npz", "model.ckpt-2.npz", "averaged/model.ckpt-2.npz"):
        table.add(int(path[-5]), tmp_path / path, "a", scores)
    draw_evaluations(table.rows, tmp_path / "eval-dev.png", "title", drawn_score(tmp_path, [scores]))
    labels = ["loss (nats per target token)", *filter(None, [title])]
    assert shown == [(label, points) for label in labels for points in (2, 1)]
