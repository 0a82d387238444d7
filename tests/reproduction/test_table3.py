"""Table 3, run for real with models that are too small to be any good."""

import csv

import pytest

from t2t_revival.reproduction import table3
from t2t_revival.reproduction.table3 import ROWS


@pytest.fixture(scope="module")
def made(tiny_runs):
    """Base and two rows."""
    said: list[str] = []
    return *table3.make_tables(tiny_runs, ["table3_a_h1", "table3_e_learned"], said.append), said


def test_numbers_are_the_papers() -> None:
    assert {name: (row.perplexity, row.bleu, row.parameters) for name, row in ROWS.items()} == {
        "base": (4.92, 25.8, 65),
        "table3_a_h1": (5.29, 24.9, 65),
        "table3_a_h4": (5.00, 25.5, 65),
        "table3_a_h16": (4.91, 25.8, 65),
        "table3_a_h32": (5.01, 25.4, 65),
        "table3_b_dk16": (5.16, 25.1, 58),
        "table3_b_dk32": (5.01, 25.4, 60),
        "table3_c_n2": (6.11, 23.7, 36),
        "table3_c_n4": (5.19, 25.3, 50),
        "table3_c_n8": (4.88, 25.5, 80),
        "table3_c_d256": (5.75, 24.5, 28),
        "table3_c_d1024": (4.66, 26.0, 168),
        "table3_c_ff1024": (5.12, 25.4, 53),
        "table3_c_ff4096": (4.75, 26.2, 90),
        "table3_d_drop0": (5.77, 24.6, 65),
        "table3_d_drop2": (4.95, 25.5, 65),
        "table3_d_ls0": (4.67, 25.3, 65),
        "table3_d_ls2": (5.47, 25.7, 65),
        "table3_e_learned": (4.92, 25.7, 65),
        "big": (4.33, 26.4, 213),
    }


@pytest.mark.slow
@pytest.mark.nightly
def test_the_table_has_measured_columns_beside_the_papers(made) -> None:
    table, _, said = made
    cells = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["row"] for row in cells] == ["base", "(A) table3_a_h1", "(E) table3_e_learned"]
    assert [row["BLEU, paper"] for row in cells] == ["25.8", "24.9", "25.7"]
    assert [row["to base, paper"] for row in cells] == ["", "-0.9", "-0.1"]
    assert cells[1]["trained as"] == "hidden_size 4, num_heads 1"
    for row in cells:
        assert 1 < float(row["PPL"]) < 400  # fewer than the pieces of the vocabulary
        assert 0 <= float(row["BLEU"]) <= 100
    assert float(cells[1]["to base"]) == pytest.approx(
        float(cells[1]["BLEU"]) - float(cells[0]["BLEU"]), abs=0.011
    )
    assert said[0] == "table 3, row 1 of 3: base"


@pytest.mark.slow
@pytest.mark.nightly
def test_parameters_are_counted(made) -> None:
    cells = [dict(zip(made[0].columns, row, strict=True)) for row in made[0].rows]
    layers = 2 * (4 * 32 * 32 + 2 * 32 * 32 + 32 + 32) + 4 * 32 * 32  # projections, networks and biases
    norms = 2 * 32 * (2 + 3)
    assert float(cells[0]["parameters (M)"]) == pytest.approx((500 * 32 + layers + norms) / 1e6, abs=0.006)
    learned = float(cells[2]["parameters (M)"]) - float(cells[0]["parameters (M)"])
    assert learned == pytest.approx(2 * 128 * 32 / 1e6, abs=0.011)


@pytest.mark.slow
@pytest.mark.nightly
def test_findings_are_of_the_rows_that_were_run(made) -> None:
    assert [row[0] for row in made[1].rows] == [
        "one head is worse than eight",
        "learned positions are about equal",
    ]
    assert "findings hold here" in made[1].remarks[0]


@pytest.mark.slow
@pytest.mark.nightly
def test_files_and_picture(made, tmp_path) -> None:
    table = made[0]
    _, data = table.write(tmp_path)
    with data.open(newline="") as file:
        assert [row["row"] for row in csv.DictReader(file)] == [row[0] for row in table.rows]
    picture = tmp_path / "table3.png"
    table3.draw(table, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
