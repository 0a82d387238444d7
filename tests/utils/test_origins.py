"""Records of what something was made of; tests/data/test_changed_origins.py compares them."""

from t2t_revival.utils import origins
from t2t_revival.utils.origins import Origins


def test_files_that_stay_have_not_changed_and_are_not_read(tmp_path, monkeypatch):
    file = tmp_path / "a"
    file.write_text("one\n")
    made = Origins.of([file])
    monkeypatch.setattr(origins, "checksum", lambda path: 1 / 0)
    assert made.change([file]) == made.change() == ""
