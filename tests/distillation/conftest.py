"""A small corpus with its data, and teachers without a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2t_revival import registry
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.trained_models import TrainedModel
from t2t_revival.distillation.teacher_outputs import TeacherOutputs
from t2t_revival.problems.text_problems import Text2TextProblem
from t2t_revival.training.checkpoints import directory, file
from tests.support.fake_translator import FakeTranslator

SIZES = {"train": 10, "dev": 3, "test": 2}
LONG = "the dog sees " * 20


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of English to German; the first training pair is too long for the teachers here."""
    root = tmp_path_factory.mktemp("distillation")
    (root / "corpus").mkdir()
    for split, count in SIZES.items():
        english = [f"the dog sees {split}{number} houses" for number in range(count)]
        german = [f"der Hund sieht {split}{number} Häuser" for number in range(count)]
        english[0] = LONG if split == "train" else english[0]
        for language, lines in (("en", english), ("de", german)):
            (root / "corpus" / f"{split}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    problem = registry.problem("translate_ende", data_source=str(root / "corpus"), vocab_size=300)
    problem.generate_data(root / "data")
    return root / "data"


@pytest.fixture
def teacher(tmp_path: Path) -> TrainedModel:
    """A checkpoint of no model."""
    path = tmp_path / "teacher" / "model.ckpt-7.npz"
    path.parent.mkdir()
    file.save(path, {"model/weight": np.ones(3, np.float32)}, {"step": 7})
    return TrainedModel(path.parent, directory.Checkpoint(7, False, path))


@pytest.fixture
def make_outputs(tmp_path: Path, teacher: TrainedModel, data_dir: Path) -> Callable[..., TeacherOutputs]:
    """Makes the outputs of that teacher in blocks of 4 lines: (name of the folder, problem, other fields)."""

    def make(name: str = "distilled", problem: str = "translate_ende", **fields: Any) -> TeacherOutputs:
        made = registry.problem(problem)
        assert isinstance(made, Text2TextProblem)
        options = fields.pop("options", DecodeHParams(beam_size=3))
        return TeacherOutputs(
            tmp_path / name, [teacher], made, data_dir, options, **{"block_lines": 4, **fields}
        )

    return make


@pytest.fixture
def translator(data_dir: Path, teacher: TrainedModel) -> Callable[..., FakeTranslator]:
    """Makes a fake translator of that teacher: (stop_after, translate)."""
    return lambda **how: FakeTranslator(data_dir, teacher.checkpoint, **how)
