"""Table 2: its trainings, their cost, and the paper's systems."""

import dataclasses
import shutil

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.checkpoints.file import save
from t2t_revival.model_folder import Run
from t2t_revival.reproduction import table2
from t2t_revival.reproduction.runs import Decoded
from t2t_revival.reproduction.training_flops import counted_flops, device_name, training_flops
from t2t_revival.utils.made_of import fingerprint
from tests.support.copy_task import shared_models


def formula(hparams, vocab_size, source, target, sentences=1) -> float:
    """FLOPs of an update, where a graph of the paper's large models would take long."""
    return training_flops(hparams, vocab_size, [source] * sentences, [target] * sentences)


@pytest.fixture(scope="module")
def made(tiny_runs):
    """The base model of both languages; only the graphs of these tiny models are counted."""
    said: list[str] = []

    def counted(hparams, vocab_size, *shape) -> float:
        count = formula if vocab_size == table2.VOCABULARY else counted_flops
        return count(hparams, vocab_size, *shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table2, "counted_flops", counted)
        patch.setitem(table2.MATRIX_SIZES, "cpu", 64)
        with shared_models():
            table = table2.make_table(tiny_runs, [], ["base"], said.append)
        yield table, said


@pytest.mark.slow
@pytest.mark.nightly
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
    decoded = tiny_runs.output_dir("translate_enfr", "base") / "decoded"
    assert (decoded / "test-model.ckpt-20-average.outputs").exists()


@pytest.mark.slow
@pytest.mark.nightly
def test_what_is_finished_stays_in_the_table(made, tiny_runs) -> None:
    idle = dataclasses.replace(tiny_runs, train_missing=False)
    again = table2.make_table(idle, ["translate_enfr"], ["base"], print)
    assert again.rows == made[0].rows


@pytest.fixture
def counted(monkeypatch) -> list[tuple]:
    """Calls of `counted_flops`, which the formula replaces."""
    calls: list[tuple] = []

    def recorded(*call) -> float:
        calls.append(call)
        return formula(*call)

    monkeypatch.setattr(table2, "counted_flops", recorded)
    monkeypatch.setattr(table2, "sustained_rate", lambda size: 2e11)
    return calls


def cells(table) -> dict[str, dict]:
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_base_and_big_are_counted_beside_the_paper_s_rule(tmp_path, counted) -> None:
    rows = cells(table2.cost_table(tmp_path, "cpu", [], print))
    base, big = rows["Transformer (base model)"], rows["Transformer (big)"]
    assert (base["updates"], base["hours"]) == (100_000, 12)
    assert base["time x devices x rate"] == pytest.approx(12 * 3600 * 8 * 9.5e12)
    assert base["counted from the graph"] == pytest.approx(
        100_000 * training_flops(counted[0][0], 37_000, [25] * 1000, [25] * 1000)
    )
    assert 0.2 < base["rate used"] < 0.5
    assert big["counted from the graph"] > 8 * base["counted from the graph"]
    assert rows["ByteNet"]["counted from the graph"] is None
    assert [shape[1:] for shape in counted] == [(37_000, 25, 25, 1_000)] * 2


@pytest.fixture
def trained(tmp_path, tiny_hparams, subwords_file):
    """An output_dir whose data is gone."""
    place = tmp_path / "run"
    tiny_hparams.save(place)
    shutil.copy(subwords_file, place)
    run = Run("translate_ende", "tiny", "/gone", subwords_file.name, fingerprint(subwords_file), {})
    run.save(place)
    seen = {"target_tokens": 1500, "source_tokens": 1000, "examples": 200, "seconds": 7200.0}
    save(
        place / "model.ckpt-9.npz",
        {"model/w": np.zeros(1, np.float32)},
        {"step": 9, "seen": seen, "replicas": 4},
    )
    return place


@pytest.fixture
def decoded(tmp_path) -> Decoded:
    """Outputs equal to their references."""
    for name in ("out", "ref"):
        (tmp_path / name).write_text("a dog runs over the green field\n")
    return Decoded(tmp_path / "out", tmp_path / "ref", "test")


def test_a_training_has_its_row(trained, decoded, tmp_path, counted, tiny_hparams) -> None:
    table = table2.cost_table(tmp_path, "cpu", [(trained, decoded)], print)
    row = cells(table)["run: translate_ende, tiny"]
    assert row["time x devices x rate"] == pytest.approx(4 * 2 * 3600 * 2e11)
    assert row["updates"] == 9
    assert row["target tokens"] == 1500
    assert (row["BLEU"], row["of split"]) == (100.0, "test")
    # 200 pairs of 5 and 7.5 tokens
    pieces = counted[-1][1]
    expected = 200 * training_flops(tiny_hparams, pieces, [5], [7.5])
    assert row["counted from the graph"] == pytest.approx(expected)
    assert device_name() in "\n".join(table.remarks)
    picture = tmp_path / "table2.png"
    table2.draw(table, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("scale", "place", "message"),
    [
        ("cpu", "run", r"model.ckpt-10.npz has no record of its training data"),
        ("cpu", "none", "no trained model"),
        ("papers", "run", "did you mean paper"),
    ],
)
def test_what_cannot_be_counted_is_an_error(
    trained, decoded, tmp_path, counted, scale, place, message
) -> None:
    save(trained / "model.ckpt-10.npz", {"model/w": np.zeros(1, np.float32)}, {"step": 10})
    with pytest.raises(T2TError, match=message):
        table2.cost_table(tmp_path, scale, [(tmp_path / place, decoded)], print)


def test_a_damaged_line_is_made_again(tmp_path, counted) -> None:
    table2.cost_table(tmp_path, "cpu", [], print)
    path = tmp_path / table2.FILE_NAME
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1][:-30] + "x"]) + "\n")
    table2.cost_table(tmp_path, "cpu", [], print)
    assert len(counted) == 3
    assert path.read_text().splitlines() == lines
