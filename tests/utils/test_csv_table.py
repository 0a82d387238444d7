"""CSV tables: text of the file, rows of a corrupt one, and columns that come later."""

from pathlib import Path

from t2t_revival.utils.csv_table import CsvTable


def test_rows_may_have_other_columns(tmp_path: Path) -> None:
    table = CsvTable(tmp_path / "scores.csv")
    assert table.rows() == []
    table.append({"step": 1, "loss": 3.0})
    table.append({"step": 2})
    assert table.path.read_bytes() == b"step,loss\r\n1,3.0\r\n2,\r\n"
    table.append({"step": 3, "bleu": "9, no more"})
    assert table.path.read_bytes() == b'step,loss,bleu\r\n1,3.0,\r\n2,,\r\n3,,"9, no more"\r\n'
    assert table.rows()[2] == {"step": "3", "loss": "", "bleu": "9, no more"}


def test_damaged_rows_are_not_parsed(tmp_path: Path) -> None:
    table = CsvTable(tmp_path / "scores.csv")
    table.path.write_text("step,loss\n1,3.0\n2\n3,x\n4,1.0\n", encoding="utf-8")
    assert table.parse(lambda row: (int(row["step"]), float(row["loss"]))) == [(1, 3.0), (4, 1.0)]


def test_columns_may_be_selected(tmp_path: Path) -> None:
    table = CsvTable(tmp_path / "scores.csv")
    table.write([{"a": 1, "b": 2}, {"b": 3, "c": 4}], ["c", "b"])
    assert table.path.read_bytes() == b"c,b\r\n,2\r\n4,3\r\n"
