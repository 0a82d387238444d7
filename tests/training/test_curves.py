"""Curves survive crashes, resumptions, and scores that come and go."""

from pathlib import Path

import pytest
import tensorflow as tf

from t2t_revival.errors import T2TError
from t2t_revival.training.curve_files import DEV, TRAIN, csv_path, read_curve
from t2t_revival.training.curves import Curves
from t2t_revival.training.state import Seen


def add(folder: Path, start: int, *points: tuple[int, dict[str, float]]) -> None:
    with Curves(folder, start) as curves:
        for step, scores in points:
            curves.add(DEV, step, Seen(target_tokens=10 * step), scores)


def test_points_come_back(tmp_path: Path) -> None:
    add(tmp_path, 0, (1, {"loss": 2.5}), (2, {"loss": 2.25}))
    rows = read_curve(tmp_path, DEV)
    assert [(row["step"], row["target_tokens"], row["loss"]) for row in rows] == [(1, 10, 2.5), (2, 20, 2.25)]
    assert read_curve(tmp_path, TRAIN) == []


def test_later_points_are_dropped_on_resumption(tmp_path: Path) -> None:
    add(tmp_path, 0, (1, {"loss": 3.0}), (2, {"loss": 2.0}), (3, {"loss": 1.0}))
    add(tmp_path, 2, (3, {"loss": 1.5}))
    assert [row["loss"] for row in read_curve(tmp_path, DEV)] == [3.0, 2.0, 1.5]
    add(tmp_path, 0)
    assert not csv_path(tmp_path, DEV).exists()


def test_scores_may_come_and_go(tmp_path: Path) -> None:
    add(tmp_path, 0, (1, {"loss": 3.0}))
    add(tmp_path, 1, (2, {"loss": 2.0, "bleu": 9.0}))
    add(tmp_path, 2, (3, {"loss": 1.0}))
    assert [row.get("bleu") for row in read_curve(tmp_path, DEV)] == [None, 9.0, None]
    assert [row["loss"] for row in read_curve(tmp_path, DEV)] == [3.0, 2.0, 1.0]


def test_a_line_cut_short_by_a_crash_is_passed_over(tmp_path: Path) -> None:
    add(tmp_path, 0, (1, {"loss": 3.0}), (2, {"loss": 2.0}))
    path = csv_path(tmp_path, DEV)
    for rest in ("3", "3,3", "3,30,1.0\n", "\x00"):
        path.write_text(path.read_text(encoding="utf-8") + rest, encoding="utf-8")
        assert [row["loss"] for row in read_curve(tmp_path, DEV) if "loss" in row] == [3.0, 2.0]
        add(tmp_path, 2)
        assert [row["loss"] for row in read_curve(tmp_path, DEV)] == [3.0, 2.0]


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        tf.errors.ResourceExhaustedError(None, None, "{{node}} events.v2; No space left on device\n\tFailed"),
    ],
)
def test_a_full_disk_is_not_taken_for_full_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(tf.summary, "scalar", fail)
    with pytest.raises(T2TError, match=f"cannot write curves in {tmp_path}: No space left on device; the"):
        add(tmp_path, 0, (1, {"loss": 3.0}))


def test_what_cannot_be_closed_hides_no_error(tmp_path: Path) -> None:
    class Writer:
        def close(self) -> None:
            raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    curves = Curves(tmp_path, 0)
    curves._writers[DEV] = Writer()
    curves.__exit__()
