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


def test_size_and_content_count_and_the_time_does_not(tmp_path):
    file = tmp_path / "a"
    file.write_text("one\n")
    made = Origins.of([file])
    file.write_text("seven\n")
    assert made.change() == f"{file} has 6 bytes instead of 4"
    file.write_text("two\n")
    assert made.change() == f"{file} has other content of the same size"
    file.write_text("one\n")
    os.utime(file, (1, 1))
    assert made.change() == ""


def test_files_that_are_gone_cannot_be_compared(tmp_path):
    file = tmp_path / "a"
    file.touch()
    made = Origins.of([file])
    file.unlink()
    assert made.are_gone
    assert made.change() == ""
    assert not Origins().are_gone
