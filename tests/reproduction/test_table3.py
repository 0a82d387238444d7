"""Table 3: proportions, findings, and all of it run for real with models too small to be any good."""

import csv

import pytest

from t2t_revival import registry
from t2t_revival.metrics.metric import Compared
from t2t_revival.reproduction import table3
from t2t_revival.reproduction.scales import CPU, PAPER
from t2t_revival.reproduction.table3 import FAILS, FINDINGS, HOLDS, ROWS, UNDECIDED, Finding, verdict


@pytest.fixture(scope="module")
def made(tiny_runs):
    """Base and two rows."""
    said: list[str] = []
    return *table3.make_tables(tiny_runs, ["table3_a_h1", "table3_e_learned"], said.append), said


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


@pytest.mark.parametrize("name", ROWS)
def test_a_small_row_keeps_its_proportions_to_the_base_model_and_the_papers_scale_changes_none(name) -> None:
    base, row = registry.hparams("base"), registry.hparams(name)
    assert PAPER.overrides(row) == ""
    small_base, small_row = CPU.adapt(base), CPU.adapt(row)
    for field in ("num_hidden_layers", "hidden_size", "filter_size", "num_heads", "key_channels"):
        assert getattr(small_row, field) * getattr(base, field) == getattr(row, field) * getattr(
            small_base, field
        ), field
    assert small_row.train_steps == pytest.approx(
        row.train_steps / base.train_steps * small_base.train_steps, abs=3
    )
    for field in ("layer_prepostprocess_dropout", "label_smoothing", "pos", "num_heads"):
        assert getattr(small_row, field) == getattr(row, field)
    assert small_row.pre_norm == small_base.pre_norm
    assert registry.hparams(name, CPU.overrides(row)) == small_row


BASE = Compared(30.0, 0.5, None)
WORSE, BETTER, EQUAL = Finding("", "row", -1), Finding("", "row", 1), Finding("", "row", 0)


@pytest.mark.parametrize(
    ("finding", "bleu", "p", "expected"),
    [
        (WORSE, 28.0, 0.001, HOLDS),
        (WORSE, 32.0, 0.001, FAILS),
        (WORSE, 29.5, 0.2, UNDECIDED),
        (BETTER, 32.0, 0.001, HOLDS),
        (BETTER, 28.0, 0.001, FAILS),
        (BETTER, 30.2, 0.2, UNDECIDED),
        (EQUAL, 30.4, 0.01, HOLDS),
        (EQUAL, 28.0, 0.001, FAILS),
        (EQUAL, 29.0, 0.2, UNDECIDED),
    ],
)
def test_a_finding_holds_if_the_difference_is_of_its_kind(finding, bleu, p, expected) -> None:
    assert verdict(finding, BASE, Compared(bleu, 0.5, p)) == expected


def test_findings_are_the_papers() -> None:
    for finding in FINDINGS:
        difference = ROWS[finding.row].bleu - ROWS["base"].bleu
        if finding.direction:
            assert difference * finding.direction > 0, finding
        else:
            assert abs(difference) < 0.11


def test_rows_are_all_of_the_papers_sets() -> None:
    assert set(ROWS) == {"base", "big"} | {n for n in registry.list_hparams() if n.startswith("table3_")}
