"""Tables of results as Markdown and CSV."""

import csv

import pytest

from t2t_revival.reproduction.result_table import ResultTable

TABLE = ResultTable(
    "table9",
    "Table 9: of two cities",
    ("city", "people", "share"),
    [("Ulm | Donau", 126329, 0.123456), ("Rom", None, 2.0)],
    ["Counted twice."],
)


def test_markdown_reads_as_a_table() -> None:
    assert TABLE.markdown() == (
        "## Table 9: of two cities\n"
        "\n"
        "| city | people | share |\n"
        "| --- | ---: | ---: |\n"
        "| Ulm \\| Donau | 126,329 | 0.1235 |\n"
        "| Rom |  | 2 |\n"
        "\n"
        "Counted twice.\n"
    )


def test_files_hold_the_same_rows(tmp_path) -> None:
    text, data = TABLE.write(tmp_path / "new")
    assert text.read_text() == TABLE.markdown()
    with data.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["city", "people", "share"],
            ["Ulm | Donau", "126329", "0.123456"],
            ["Rom", "", "2.0"],
        ]


def test_a_row_of_another_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        ResultTable("t", "t", ("one", "two"), [("1",)])


def test_columns_are_read_back() -> None:
    assert TABLE.texts("city") == ["Ulm | Donau", "Rom"]
    assert str(TABLE.numbers("people")) == "[126329.0, nan]"
    zero = ResultTable("t", "t", ("a",), [(0.0,), ("+0.1",), ("",)])
    assert str(zero.numbers("a")) == "[0.0, 0.1, nan]"
