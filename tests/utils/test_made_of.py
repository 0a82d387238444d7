"""Records of what a thing was made of: each change is found, and named in words."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.utils.made_of import MadeOf, fingerprint

SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["on", "off"])
VALUES = st.dictionaries(st.sampled_from("abcd"), SCALARS | st.lists(SCALARS, max_size=2), max_size=3)


@given(VALUES, VALUES, VALUES)
def test_it_differs_where_a_value_does(same: dict, before: dict, now: dict) -> None:
    """Also after it was written and read, with counts beside it."""
    old, new = {**before, **same}, {**now, **same}
    stored = MadeOf(json.loads(json.dumps({"lines": 3, **old})))
    changed = [name for name in new if {"lines": 3, **old}.get(name) != new[name]]
    assert stored.changed(MadeOf(new)) == changed
    expected = "; ".join(f"{name}={stored.values.get(name)}, not {new[name]}" for name in changed)
    assert stored.difference(MadeOf(new)) == expected
    assert MadeOf(new).difference(MadeOf(new)) == ""
    if changed:
        with pytest.raises(T2TError) as refused:
            stored.check(MadeOf(new), "out holds outputs with", "give another folder")
        assert str(refused.value) == f"out holds outputs with {expected}: give another folder"


def test_a_tuple_is_a_list_and_an_empty_text_is_seen() -> None:
    MadeOf({"heads": [1, 2]}).check(MadeOf({"heads": (1, 2)}), "it holds", "")
    assert MadeOf({"freeze": ""}).difference(MadeOf({"freeze": "encoder"})) == "freeze='', not encoder"


def test_of_very_many_changes_the_first_are_named() -> None:
    now = MadeOf(dict.fromkeys("abcdefghij", 1))
    assert MadeOf({}).difference(now).endswith("; h=None, not 1; 2 more")


def test_a_fingerprint_is_of_bytes_of_a_file_or_of_values(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1
    assert fingerprint(b"abc") == fingerprint(path) == known
    first = fingerprint({"data": {"lengths": {3: 1}}, "sentences": 200})
    assert first == fingerprint({"sentences": 200, "data": {"lengths": {3: 1}}})
    written = b'{"data": {"lengths": {"3": 1}}, "sentences": 200}'
    assert first == f"{zlib.crc32(written):08x}"
    assert first != fingerprint({"data": {"lengths": {3: 2}}, "sentences": 200})
