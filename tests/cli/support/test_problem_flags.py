"""Data generation that t2t-datagen and t2t-trainer share: TensorFlow's start and the stages on stderr."""

import pytest

from t2t_revival import Text2TextProblem, registry
from t2t_revival.cli import datagen
from t2t_revival.cli.support import problem_flags, tensorflow_setup


@pytest.mark.parametrize(
    ("source", "loads"),
    [(None, True), ("wmt14", True), ("tfds:a/b", True), ("sample", False), ("wmt14_folder", False)],
)
def test_tensorflow_is_loaded_for_its_datasets_alone(source, loads, tmp_path, monkeypatch):
    loaded = []
    monkeypatch.setattr(tensorflow_setup, "load_tensorflow", loaded.append)
    monkeypatch.setattr(Text2TextProblem, "generate_data", lambda *_, **__: "metadata")
    values = datagen.command_flags()
    values(["t2t-datagen", f"--data_dir={tmp_path}"])
    problem = registry.problem("translate_ende", data_source=source)
    assert problem_flags.generate_data(problem, values) == "metadata"
    assert loaded == [values] * loads


def test_stages_are_lines(monkeypatch, capsys):
    """Pairs have a bar; see test_progress.py."""

    def generate(problem, folder, progress):
        progress("reading", 0, 0)
        progress("vocabulary", 0, 9000)
        progress("pairs", 1000, 9000)
        progress("pairs", 9000, 9000)

    monkeypatch.setattr(Text2TextProblem, "generate_data", generate)
    values = datagen.command_flags()
    values(["t2t-datagen"])
    problem_flags.generate_data(registry.problem("translate_ende", data_source="sample"), values)
    assert capsys.readouterr().err.splitlines()[:2] == [
        "reading the source",
        "learning the vocabulary from a sample of 9,000 pairs",
    ]
