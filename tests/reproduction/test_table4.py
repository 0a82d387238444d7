"""Table 4, run for real with a parser that is too small to be any good."""

import pytest

from t2t_revival.reproduction import table4
from t2t_revival.reproduction.runs import Runs
from tests.support.copy_task import shared_models

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # trains two parsers


@pytest.fixture(scope="module")
def made(tiny_runs, tmp_path_factory):
    """Both regimes, and the lines of progress."""
    folder = tmp_path_factory.mktemp("treebank")
    tree = "(S (NP (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))\n(NP (DT a) (NN cat))\n"
    for name, count in (("train", 20), ("dev", 5), ("auto", 40)):
        (folder / f"{name}.trees").write_text(tree * count)
    runs = Runs(tiny_runs.folder / "parsing", tiny_runs.scale, tiny_runs.command, str(folder))
    with shared_models():
        return runs, table4.make_table(runs, str(folder / "auto.trees"), 0.5, print)


def test_the_paper_stands_beside_what_was_measured(made) -> None:
    runs, table = made
    transformer = [row for row in table.rows if row[0] == "Transformer (4 layers)"]
    assert [row[1:3] for row in transformer] == [
        ["WSJ only, discriminative", "91.3"],
        ["semi-supervised", "92.7"],
    ]
    for row in transformer:
        assert 0 <= float(row[3]) <= 100
        assert row[4].startswith("parsing_small, ")
    others = [row for row in table.rows if row not in transformer]
    assert {row[3] for row in others} == {None}
    assert " ".join(f"{row[0].split()[0]} {row[2]}" for row in others) == (
        "Vinyals 88.3 Petrov 90.4 Zhu 90.4 Dyer 91.7 Zhu 91.3 Huang 91.3 McClosky 92.1 Vinyals 92.1 "
        "Luong 93.0 Dyer 93.3"
    )
    picture = runs.folder / "table4.png"
    table4.draw(table, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_is_finished_is_not_run_again(made) -> None:
    runs, table = made
    asked: list[str] = []

    def only_verify(name: str, flags) -> None:
        asked.append(name)
        runs.command(name, flags)

    again = Runs(runs.folder, runs.scale, only_verify, runs.data_source)
    assert table4.make_table(again, None, None, print).rows == table.rows
    assert asked == ["t2t-datagen", "t2t-datagen"]


def test_without_parsed_text_a_row_is_missing(tiny_runs, made, tmp_path) -> None:
    runs, _ = made
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "parse_wsj").symlink_to(runs.output_dir("parse_wsj", "parsing_small").parent)
    alone = Runs(tmp_path, runs.scale, tiny_runs.command, runs.data_source)
    table = table4.make_table(alone, None, None, print)
    assert [row[1] for row in table.rows if row[3] is not None] == ["WSJ only, discriminative"]
    assert "--auto_trees" in table.remarks[-1]
