"""Checked JSON: every change of a file is detected."""

import json

import pytest

from t2t_revival import T2TError
from t2t_revival.utils import checked_json

VALUES = {"name": "p", "rate": 1e-06, "sizes": (1, 2), "lengths": {5: 1, 70: 2}, "on": True, "ö": None}


def test_what_is_saved_is_loaded(tmp_path):
    path = tmp_path / "x.json"
    checked_json.save(path, VALUES)
    expected = json.loads(json.dumps(VALUES))
    assert checked_json.load(path, "") == expected
    path.write_text(json.dumps(dict(reversed(json.loads(path.read_text()).items()))))
    assert checked_json.load(path, "") == expected, "in another layout"
    path.write_text('{"a": 1}')
    assert checked_json.load(path, "") == {"a": 1}, "by hand, without a checksum"


def test_what_was_changed_by_hand_says_so(tmp_path):
    path = tmp_path / "x.json"
    checked_json.save(path, {"a": 1})
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    with pytest.raises(T2TError, match=r"put it back\. If you changed it yourself, remove the line"):
        checked_json.load(path, "put it back")


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b"[" * 100_000, b"1"])
def test_what_is_no_object_is_named(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(T2TError, match=r"x\.json: corrupt, .*; the way out"):
        checked_json.load(path, "the way out")
