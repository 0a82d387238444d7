"""Translations in a folder, and the events of their scores."""

from pathlib import Path

import pytest

from t2t_revival import T2TError
from t2t_revival.evaluation.translation_scores import LastStep, list_translations


def test_names_end_with_a_step(tmp_path: Path) -> None:
    for name in ("ende-1000", "translate_ende-20", "x-y-0300", "ende-flags.txt", "ende-7.tmp", "300", "-5"):
        (tmp_path / name).touch()
    (tmp_path / ".translate_ende-40.tmp").touch()
    (tmp_path / ".hidden-50").touch()
    (tmp_path / "folder-60").mkdir()
    found = [(file.step, file.path.name) for file in list_translations(tmp_path)]
    assert found == [(20, "translate_ende-20"), (300, "x-y-0300"), (1000, "ende-1000")]
    assert list_translations(tmp_path / "nowhere") == []


def test_last_step(tmp_path: Path) -> None:
    last, other = LastStep(tmp_path), LastStep(tmp_path, "/beam8")
    assert last.read() is None
    last.write(300)
    assert (tmp_path / "last_evaluated_step.txt").read_text() == "300\n"
    assert last.read() == 300
    assert other.read() is None
    other.write(20)
    assert (last.read(), other.read()) == (300, 20)
    (tmp_path / "last_evaluated_step.txt").write_text("many")
    with pytest.raises(T2TError, match=r"last_evaluated_step\.txt: corrupt"):
        last.read()
