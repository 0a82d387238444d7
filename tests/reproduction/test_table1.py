"""Table 1."""

import pytest

from t2t_revival import T2TError
from t2t_revival.reproduction import table1


@pytest.mark.slow
@pytest.mark.nightly
def test_the_table_has_the_paper_s_orders_beside_what_was_measured(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(table1.SIZES, "tiny", ([(4, 64), (8, 64)], [(4, 64), (4, 128)]))
    monkeypatch.setattr(table1, "TURN", 0.0)
    with pytest.raises(T2TError, match="were not measured on this device: leave out --norun"):
        table1.make_table(tmp_path, "tiny", print, measure_missing=False)
    table = table1.make_table(tmp_path, "tiny", print)
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    recurrent, convolution = rows["recurrent (LSTM)"], rows["convolutional (k = 3)"]
    assert recurrent["operations (paper)"] == "O(n·d²)"
    assert recurrent["n: exponent of operations"] == "1.00 (1.00)"
    assert recurrent["d: exponent of operations"] == "2.00 (2.00)"
    assert recurrent["counted at n = 8"] == 8
    assert convolution["counted at n = 8"] == 1
    # 8 n d² + 4 n² d at n = 4, d = 64 and at n = 8: 2.03 as much, 2^1.02.
    assert rows["self-attention"]["n: exponent of operations"] == "1.04 (1.04)"
    assert table1.make_table(tmp_path, "tiny", print, measure_missing=False).rows == table.rows
    monkeypatch.setattr(table1, "device_name", lambda: "another")
    assert not table1.read_timings(tmp_path, "tiny")


def test_the_exponent_is_that_of_least_squares() -> None:
    assert table1.exponent([1, 2, 4], [1, 4, 4]) == pytest.approx(1.0)
