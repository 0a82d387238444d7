"""The small version of the fuzz of damaged files; and that it would see a fault."""

from pathlib import Path

import fuzz_corruption
import pytest
from fuzz_corruption import DETECTED, HARMLESS, Kind, fuzz

from t2t_revival import T2TError


def test_each_damage_is_named_or_changes_nothing(tmp_path):
    cases = fuzz(tmp_path / "fuzz", 56, seed=5)
    assert [case for case in cases if case.outcome not in (DETECTED, HARMLESS)] == []
    assert len({(case.kind, case.damage) for case in cases}) == 7 * 4


def unnamed(path):
    raise T2TError("something is wrong")


@pytest.mark.parametrize(
    ("read", "outcome"),
    [
        (Path.read_bytes, "not detected"),
        (unnamed, "the message does not name the file: something"),
        (lambda path: int(path.read_bytes()), "ValueError: invalid literal"),
        (lambda path: b"1", HARMLESS),
    ],
)
def test_a_fault_is_seen(tmp_path, read, outcome):
    path = tmp_path / "file"
    path.write_bytes(b"1x")
    assert fuzz_corruption._outcome(Kind("any", [path], read), path, b"1").startswith(outcome)
