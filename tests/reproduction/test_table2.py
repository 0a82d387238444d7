"""Table 2: what is trained for it, and how it is decoded."""

import dataclasses

import pytest

from t2t_revival.errors import T2TError
from t2t_revival.reproduction import table2


@pytest.fixture(scope="module")
def made(tiny_runs):
    """The base model of both languages."""
    said: list[str] = []
    return table2.table(tiny_runs, [], ["base"], said.append), said


def test_trainings_stand_below_the_papers_systems(made, tiny_runs) -> None:
    table, said = made
    names = [row[0] for row in table.rows]
    assert names[-2:] == ["base: translate_ende, base", "base: translate_enfr, base"]
    assert "Transformer (big)" in names
    assert [line for line in said if line.startswith("table 2")] == [
        "table 2: translate_ende, base",
        "table 2: translate_enfr, base",
    ]
    for row in table.rows[-2:]:
        assert 0 <= row[-2] <= 100
        assert row[-1] == "test"
    decoded = tiny_runs.place("translate_enfr", "base") / "decoded"
    assert (decoded / "test-model.ckpt-20-average.outputs").exists()


def test_what_is_finished_stays_in_the_table(made, tiny_runs) -> None:
    idle = dataclasses.replace(tiny_runs, training=False)
    again = table2.table(idle, ["translate_enfr"], ["base"], print)
    assert again.rows == made[0].rows


@pytest.mark.parametrize(
    ("problems", "models", "message"),
    [(["translate_deen"], [], "translate_ende"), ([], ["bigger"], "'bigger'.*big")],
)
def test_unknown_names(tiny_runs, problems, models, message) -> None:
    with pytest.raises(T2TError, match=message):
        table2.table(tiny_runs, problems, models, print)


def test_big_models_of_french_have_less_dropout() -> None:
    assert table2.CHANGES == {("translate_enfr", "big"): "layer_prepostprocess_dropout=0.1"}
