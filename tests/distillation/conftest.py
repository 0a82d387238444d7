"""A small corpus with its data, and a translator without a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from t2t_revival.addons.distillation.teacher_outputs import TeacherOutputs
from t2t_revival.decoding.trained_models import TrainedModel
from tests.support import decoded_blocks
from tests.support.fake_translator import FakeTranslator


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoded_blocks.make_data(tmp_path_factory.mktemp("distillation"))


@pytest.fixture
def teacher(tmp_path: Path) -> TrainedModel:
    return decoded_blocks.model_without_weights(tmp_path / "teacher")


@pytest.fixture
def make_outputs(tmp_path: Path, teacher: TrainedModel, data_dir: Path) -> Callable[..., TeacherOutputs]:
    """Makes the outputs of that teacher: (name of the folder, other arguments)."""

    def make(name: str = "distilled", **fields: Any) -> TeacherOutputs:
        return decoded_blocks.teacher_outputs(tmp_path / name, teacher, data_dir, **fields)

    return make


@pytest.fixture
def translator(data_dir: Path, teacher: TrainedModel) -> Callable[..., FakeTranslator]:
    """Makes a translator of that teacher: (stop_after, translate)."""
    return partial(FakeTranslator, data_dir, teacher.checkpoint)
