"""Table 1."""

import csv

import pytest

from t2t_revival import T2TError
from t2t_revival.reproduction.table1 import table as table1
from t2t_revival.reproduction.table1 import timings
from t2t_revival.reproduction.table1.layer_types import LAYER_TYPES
from t2t_revival.reproduction.table1.timings import Plan, read_timings

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # measures

TINY = Plan((4, 8), (64, 128), fixed_channels=64, fixed_length=4, rounds=3, turn=0.0)
SIZES = [(4, 64), (4, 128), (8, 64)]


@pytest.fixture(autouse=True)
def tiny_scale(monkeypatch) -> None:
    monkeypatch.setitem(timings.PLANS, "tiny", TINY)
    monkeypatch.setattr(table1, "PATH_LENGTHS", (4,))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder with all points of the scale."""
    folder = tmp_path_factory.mktemp("measured")
    timings.measure(folder, TINY, print)
    return folder


@pytest.fixture
def folder(measured, tmp_path):
    """A copy of it that a test may change."""
    (tmp_path / timings.FILE_NAME).write_bytes((measured / timings.FILE_NAME).read_bytes())
    return tmp_path


def cells(folder):
    with (folder / timings.FILE_NAME).open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_type_has_a_point_at_each_size(measured) -> None:
    points = read_timings(measured)
    assert {(point.layer, point.size) for point in points} == {
        (layer_type.name, size) for layer_type in LAYER_TYPES for size in SIZES
    }
    for point in points:
        assert 0 < point.lower <= point.milliseconds <= point.upper
        assert point.rounds == TINY.rounds


def test_only_missing_and_damaged_points_are_measured(folder) -> None:
    path = folder / timings.FILE_NAME
    rows = path.read_text().splitlines()
    kept, damaged = rows[:-3], rows[-1].split(",")[0] + ",4,six"
    path.write_text("\n".join([*kept, damaged]) + "\n")
    messages: list[str] = []
    points = timings.measure(folder, TINY, messages.append)
    assert len(points) == len(rows) - 1
    assert path.read_text().startswith("\n".join(kept))
    assert len([line for line in messages if line.startswith("measuring 3 layer types")]) == 1


def test_points_of_another_device_are_kept_and_not_used(folder, monkeypatch) -> None:
    before = cells(folder)
    monkeypatch.setattr(timings, "device_name", lambda: "another")
    assert read_timings(folder) == []
    one = Plan((4,), (64,), 64, 4, 2, 0.0)
    assert len(timings.measure(folder, one, print)) == len(LAYER_TYPES)
    assert cells(folder)[: len(before)] == before


def test_the_table_has_the_paper_s_orders_beside_what_was_measured(folder) -> None:
    table = table1.make_table(folder, "tiny", print)
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    recurrent, convolution = rows["recurrent (LSTM)"], rows["convolutional (k = 3)"]
    assert recurrent["operations (paper)"] == "O(n·d²)"
    assert recurrent["n: exponent of operations"] == "1.00 (1.00)"
    assert recurrent["d: exponent of operations"] == "2.00 (2.00)"
    assert recurrent["counted at n = 8"] == 8
    assert recurrent["computed at n = 4"] == "4"
    assert convolution["computed at n = 4"] == "2; dilated: 2"
    assert rows["self-attention, unprojected"]["n: exponent of operations"] == "2.00 (2.00)"
    # 8 n d² + 4 n² d at n = 4, d = 64 and at n = 8: 2.03 as much, 2^1.02.
    assert rows["self-attention"]["n: exponent of operations"] == "1.04 (1.04)"
    assert table1.draw(folder, "tiny").read_bytes().startswith(b"\x89PNG")


def test_the_exponent_is_that_of_least_squares() -> None:
    # logarithms to base 2: sizes 0, 1, 2; values 0, 2, 2: the line's slope is 1.
    assert table1.exponent([1, 2, 4], [1, 4, 4]) == pytest.approx(1.0)


def test_nothing_to_draw_is_an_error_that_says_what_to_do(tmp_path) -> None:
    with pytest.raises(T2TError, match="t2t-reproduce --table=1"):
        table1.draw(tmp_path, "tiny")
