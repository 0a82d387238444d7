"""The data of a student: its teacher's outputs, in the teacher's vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t2t_revival import T2TError
from t2t_revival.addons.distillation.student_data import make_student_data, student_data_dir
from t2t_revival.addons.distillation.teacher_outputs import TeacherOutputs
from t2t_revival.decoding.files.shards import Shard
from tests.support.decoded_blocks import SOURCES, TARGETS

MakeOutputs = Callable[..., TeacherOutputs]
MakeTranslator = Callable[..., Any]


def vocabulary(data_dir: Path) -> Path:
    (path,) = data_dir.glob("vocab.*.spm")
    return path


def without_two(line: str) -> str:
    """An output that is empty for two of the sources."""
    return "" if "train2" in line or "train5" in line else line.upper()


@pytest.fixture
def outputs(make_outputs: MakeOutputs, translator: MakeTranslator) -> TeacherOutputs:
    made = make_outputs(monolingual=["the cat sees 3 dogs"])
    made.decode(translator(translate=without_two), Shard())
    return made


def test_the_student_learns_the_outputs(outputs: TeacherOutputs, data_dir: Path) -> None:
    counts = make_student_data(outputs, False, [vocabulary(data_dir)])
    made, problem = student_data_dir(outputs, False), outputs.data.problem
    kept = [line for line in [*SOURCES, "the cat sees 3 dogs"] if without_two(line)]
    assert sorted(problem.open(made).text("train")) == sorted((line, line.upper()) for line in kept)
    assert {name: counts[name] for name in ("sources", "empty_outputs", "pairs")} == {
        "sources": 10,
        "empty_outputs": 2,
        "pairs": 8,
    }
    for split in ("dev", "test"):
        assert list(problem.open(made).text(split)) == list(problem.open(data_dir).text(split))
    assert vocabulary(made).read_bytes() == vocabulary(data_dir).read_bytes()


def test_the_original_targets_too(outputs: TeacherOutputs, data_dir: Path) -> None:
    counts = make_student_data(outputs, True, [vocabulary(data_dir)])
    pairs = list(outputs.data.problem.open(student_data_dir(outputs, True)).text("train"))
    originals = [pair for pair in pairs if pair[1].startswith("der")]
    assert sorted(originals) == list(zip(SOURCES, TARGETS, strict=True))
    assert len(pairs) == counts["pairs"] == 8 + 9
    assert student_data_dir(outputs, True) != student_data_dir(outputs, False), "students can share outputs"


def test_complete_data_is_kept(outputs: TeacherOutputs, data_dir: Path) -> None:
    counts = make_student_data(outputs, False, [vocabulary(data_dir)])
    made = student_data_dir(outputs, False)
    files = {path: path.stat().st_mtime_ns for path in made.parent.rglob("*") if path.is_file()}
    assert make_student_data(outputs, False, [vocabulary(data_dir)]) == counts
    assert {path: path.stat().st_mtime_ns for path in made.parent.rglob("*") if path.is_file()} == files


def test_a_reversed_problem(make_outputs: MakeOutputs, translator: MakeTranslator, data_dir: Path) -> None:
    outputs = make_outputs(problem="translate_ende_rev")
    outputs.decode(translator(), Shard())
    make_student_data(outputs, False, [vocabulary(data_dir)])
    made = student_data_dir(outputs, False)
    decoded = list(outputs.data.problem.open(made).text("train"))
    assert decoded[1:] == [(line, line.upper()) for line in TARGETS], (
        "the first English side is too long here"
    )
    assert (made.parent / "text" / "train.de").read_text(encoding="utf-8").splitlines()[1:] == TARGETS
    assert list(outputs.data.problem.open(made).text("dev")) == list(outputs.data.text("dev"))


def test_all_outputs_are_empty(make_outputs: MakeOutputs, translator: MakeTranslator, data_dir: Path) -> None:
    outputs = make_outputs()
    outputs.decode(translator(translate=lambda line: ""), Shard())
    with pytest.raises(T2TError, match="all 9 outputs of the teacher are empty"):
        make_student_data(outputs, False, [vocabulary(data_dir)])
