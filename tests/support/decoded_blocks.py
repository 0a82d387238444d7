"""Data and a model without weights, for tests of what a translator decodes block by block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival import DecodeHParams, registry
from t2t_revival.addons.back_translation.corpus import BackTranslation, MonolingualText
from t2t_revival.addons.distillation.teacher_outputs import TeacherOutputs
from t2t_revival.checkpoints import directory, file
from t2t_revival.decoding.trained_models import TrainedModel
from t2t_revival.model_folder import ModelFolder
from tests.support.line_corpus import houses, write_pairs

SIZES = {"train": 10, "dev": 3, "test": 2}
SOURCES = [f"the dog sees train{number} houses" for number in range(1, 10)]  # the first pair is too long
TARGETS = [f"der Hund sieht train{number} Häuser" for number in range(1, 10)]
LINES = [f"der Hund sieht {number} Häuser" for number in range(11)]
TEXT = [LINES[0], "", *LINES[1:6], "   ", "Häuser und " * 30, f"  {LINES[6]} \r", *LINES[7:]]


def make_data(root: Path) -> Path:
    """Data of English to German; the first training pair is too long to be decoded."""
    pairs = {split: houses(f"{split}{number}" for number in range(size)) for split, size in SIZES.items()}
    pairs["train"][0] = "the dog sees " * 20, pairs["train"][0][1]
    write_pairs(root, pairs)
    problem = registry.problem("translate_ende", data_source=str(root), vocab_size=300)
    problem.generate_data(root / "data")
    return root / "data"


def model_without_weights(folder: Path, value: float = 1.0) -> TrainedModel:
    """A checkpoint of no model."""
    path = folder / "model.ckpt-7.npz"
    file.save(path, {"model/weight": np.full(3, value, np.float32)}, {"step": 7})
    return TrainedModel(ModelFolder(path.parent), directory.Checkpoint(7, False, path))


def teacher_outputs(
    folder: Path, model: TrainedModel, data_dir: Path, problem: str = "translate_ende", **fields: Any
) -> TeacherOutputs:
    """Outputs of a teacher, in blocks of 4 lines."""
    options = fields.pop("options", DecodeHParams(beam_size=3))
    blocks = {"block_lines": 4, **fields}
    return TeacherOutputs(folder, [model], registry.problem(problem).open(data_dir), options, **blocks)


def back_translation(
    folder: Path,
    model: TrainedModel,
    problem: str = "translate_ende_rev",
    text: list[str] = TEXT,
    **fields: Any,
) -> BackTranslation:
    """The corpus of a model and of a file beside it, in blocks of 4 lines."""
    mono = folder.with_name("mono.de")
    mono.write_bytes("".join(f"{line}\n" for line in text).encode())
    options = fields.pop("options", DecodeHParams(beam_size=3))
    blocks = {"block_lines": 4, **fields}
    opened = MonolingualText.open([mono])
    return BackTranslation(folder, model, registry.problem(problem), "fingerprint", options, opened, **blocks)


def content(folder: Path) -> dict[str, bytes]:
    """All files by name, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
