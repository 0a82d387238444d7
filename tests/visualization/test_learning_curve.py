"""Lines of a learning curve break where the data changes."""

from pathlib import Path

from matplotlib.figure import Figure

from t2t_revival.curve_files import DEV, read_segments
from t2t_revival.visualization.learning_curve import _draw_segments

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
