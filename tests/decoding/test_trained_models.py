"""Models that are decoded together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.decoding.trained_models import open_models
from t2t_revival.training.checkpoints import file
from t2t_revival.training.run import Run


def write(folder: Path, problem: str = "translate_ende", fingerprint: str = "a") -> Path:
    folder.mkdir()
    Run(problem, "tiny", "data", "vocab.x.spm", fingerprint, {}).save(folder)
    for step in (5, 7):
        file.save(folder / f"model.ckpt-{step}.npz", {"model/weight": np.ones(3, np.float32)}, {"step": step})
    return folder


def test_the_newest_checkpoints_or_a_given_one(tmp_path: Path) -> None:
    one, other = write(tmp_path / "one"), write(tmp_path / "other")
    teachers, run = open_models([one, other], "teacher")
    assert [(teacher.output_dir, teacher.checkpoint.step) for teacher in teachers] == [(one, 7), (other, 7)]
    assert run.problem == "translate_ende"
    assert teachers[0].name.startswith("model.ckpt-7.npz with weights ")
    ((_, checkpoint),), _ = open_models([one], "teacher", str(one / "model.ckpt-5.npz"))
    assert checkpoint.step == 5


def test_what_does_not_fit(tmp_path: Path) -> None:
    one = write(tmp_path / "one")
    vocabulary = write(tmp_path / "vocabulary", fingerprint="b")
    problem = write(tmp_path / "problem", problem="translate_enfr")
    with pytest.raises(T2TError, match=r"vocabulary has another vocabulary, unlike .*one: models that are"):
        open_models([one, vocabulary], "ensemble")
    with pytest.raises(T2TError, match=r"problem has a model of translate_enfr, unlike .*one"):
        open_models([one, problem], "teacher")
    with pytest.raises(T2TError, match=r"5.npz is of one model: for several give newest or best or average"):
        open_models([one, one], "teacher", str(one / "model.ckpt-5.npz"))
    with pytest.raises(T2TError, match="no trained model in"):
        open_models([tmp_path / "nowhere"], "teacher")
