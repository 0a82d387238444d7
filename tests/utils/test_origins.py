"""Records of what something was made of, and their comparison."""

import os

from t2t_revival.utils import origins
from t2t_revival.utils.origins import Origins


def test_files_that_stay_have_not_changed_and_are_not_read(tmp_path, monkeypatch):
    file = tmp_path / "a"
    file.write_text("one\n")
    made = Origins.of([file])
    monkeypatch.setattr(origins, "checksum", lambda path: 1 / 0)
    assert made.change([file]) == made.change() == ""


def test_a_change_is_described(tmp_path):
    file, other = tmp_path / "a", tmp_path / "b"
    file.write_text("one\n")
    made = Origins.of([file], "1.0.0")
    file.write_text("seven\n")
    assert made.change([file]) == f"{file} has 6 bytes instead of 4"
    file.write_text("two\n")
    assert made.change([file]) == made.change() == f"{file} has other content of the same size"
    file.write_text("one\n")
    os.utime(file, (1, 1))
    assert made.change([file], "1.0.0") == ""
    assert made.change([file], "2.0.0") == "it was version 1.0.0 and is 2.0.0"
    other.touch()
    assert made.change([file, other]) == f"{other} is new"
    assert made.change([]) == f"{file} is not there any more"


def test_files_that_are_gone_cannot_be_compared(tmp_path):
    file = tmp_path / "a"
    file.touch()
    made = Origins.of([file])
    file.unlink()
    assert made.are_gone
    assert made.change() == ""
    assert not Origins().are_gone


def test_the_record_is_that_of_its_json(tmp_path):
    import dataclasses
    import json

    (tmp_path / "a").write_text("one\n")
    made = Origins.of([tmp_path / "a"], "1.0.0")
    assert Origins.from_dict(json.loads(json.dumps(dataclasses.asdict(made)))) == made
