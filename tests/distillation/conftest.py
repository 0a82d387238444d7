"""A small corpus with its data, and teachers without a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from t2t_revival import registry
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Translation
from t2t_revival.distillation.teacher_outputs import TeacherOutputs
from t2t_revival.distillation.teachers import TrainedModel
from t2t_revival.problems.text_problems import Text2TextProblem
from t2t_revival.training.checkpoints import directory, file

SIZES = {"train": 10, "dev": 3, "test": 2}
LONG = "the dog sees " * 20
BATCH = 2  # lines


class FakeTranslator:
    """Translates a line to the same in capitals, and then to worse outputs; counts its batches.

    Args:
        data_dir: has the vocabulary.
        checkpoint: for the origin of outputs.
        stop_after: batches after which it is interrupted; `None` never is.
        translate: returns the best output of a line.
    """

    def __init__(
        self,
        data_dir: Path,
        checkpoint: directory.Checkpoint,
        stop_after: int | None = None,
        translate: Callable[[str], str] = str.upper,
    ) -> None:
        self.problem = registry.problem("translate_ende")
        self.vocabulary = self.problem.vocabulary(data_dir)
        self.max_length, self.num_parallel_batches, self.options = 40, 1, DecodeHParams(beam_size=3)
        self.engine, self.translations = "tensorflow, float32", None
        self.checkpoint, self.model = checkpoint, SimpleNamespace(count_params=lambda: 1_000_000)
        self._stop_after, self._translate = stop_after, translate
        self.decoded: list[str] = []

    def nbest(
        self,
        lines: list[str],
        n: int | None = None,
        completed: Mapping[int, Any] | None = None,
        on_outputs: Callable[[Mapping[int, Any]], None] = lambda outputs: None,
        **_: Any,
    ) -> list[list[Translation]]:
        found = dict(completed or {})
        batches = [range(start, min(start + BATCH, len(lines))) for start in range(0, len(lines), BATCH)]
        for batch in batches:
            if found.keys() >= set(batch):
                continue
            if self._stop_after == len(self.decoded) // BATCH:
                raise KeyboardInterrupt
            self.decoded += [lines[index] for index in batch]
            outputs = {index: self._outputs(lines[index])[: n or 1] for index in batch}
            on_outputs(outputs)
            found |= outputs
        return [found[index] for index in range(len(lines))]

    def _outputs(self, line: str) -> list[Translation]:
        texts = self._translate(line), line, f"der Hund sieht {line.split()[-2]} Häuser"
        return [Translation(text, -float(rank)) for rank, text in enumerate(texts, start=1)]


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
