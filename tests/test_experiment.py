"""Curves of earlier versions, forked processes, and paths of a training."""

from dataclasses import replace
from pathlib import Path

import pytest

from t2t_revival import Experiment, RunConfig, T2TError, registry
from t2t_revival.training.curve_files import DEV, TRAIN, read_segments
from t2t_revival.utils import forks
from tests.contract.trainings import KINDS, Trainings


def without_labels(path: Path) -> None:
    """Takes the column that names the data out of a curve's file."""
    header, *rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    place = header.index("data")
    kept = [",".join(row[:place] + row[place + 1 :]) for row in (header, *rows)]
    path.write_text("".join(f"{row}\n" for row in kept), encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.slow
def test_evaluations_of_earlier_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are of today's data if the run was trained on the same folder."""
    trainings, kind = Trainings(tmp_path), KINDS["from the seed"]
    trainings.train(kind, "run", 1)
    for step, source, said in (
        (2, kind.source, "1 evaluations do not name their data: taken to be measured on "),
        (3, kind.source, ""),
        (4, "{}/talks", "3 evaluations do not name their data: not compared with later ones"),
    ):
        if said:
            for curve in (DEV, TRAIN):
                without_labels(tmp_path / "run" / f"{curve}.csv")
        capsys.readouterr()
        trainings.train(replace(kind, source=source), "run", step)
        shown = capsys.readouterr().err
        assert said in shown
        assert bool(said) == ("do not name" in shown), "once, and for ever"
        segments = read_segments(tmp_path / "run", DEV, "loss")
        steps = [[row["step"] for row in segment.rows] for segment in segments]
        assert steps == ([[1, 2, 3], [4]] if step == 4 else [list(range(1, step + 1))])


def test_a_process_forked_from_one_that_computes_does_not_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "_was_in_use", True)
    problem, hparams = registry.problem("translate_ende", data_source="sample"), registry.hparams("tiny")
    with pytest.raises(T2TError, match="this process was forked from one that used TensorFlow or JAX"):
        Experiment(problem, hparams, "tiny", tmp_path / "data", RunConfig(tmp_path / "run")).run()
    assert list(tmp_path.iterdir()) == []


def test_paths_may_be_strings() -> None:
    assert RunConfig("~/run").output_dir == Path.home() / "run"  # type: ignore[arg-type]
    problem, hparams = registry.problem("translate_ende", data_source="sample"), registry.hparams("tiny")
    experiment = Experiment(problem, hparams, "tiny", "data", RunConfig(Path("run")))  # type: ignore[arg-type]
    assert experiment.data_dir == Path("data")
    for folder in (None, 5, "gs://bucket/run"):
        with pytest.raises(T2TError, match="output_dir="):
            RunConfig(folder)  # type: ignore[arg-type]
