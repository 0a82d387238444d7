"""Forked processes, and paths of a training."""

from pathlib import Path

import pytest

from t2t_revival import Experiment, RunConfig, T2TError, registry
from t2t_revival.utils import processes


def test_a_forked_process_does_not_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_was_in_use", True)
    problem, hparams = registry.problem("translate_ende", data_source="sample"), registry.hparams("tiny")
    problem.generate_data(tmp_path / "data")
    experiment = Experiment(problem.open(tmp_path / "data"), hparams, "tiny", RunConfig(tmp_path / "run"))
    with pytest.raises(T2TError, match="this process was forked from one that used TensorFlow or JAX"):
        experiment.run()
    assert not (tmp_path / "run").exists()


def test_paths_may_be_strings() -> None:
    assert RunConfig("~/run").output_dir == Path.home() / "run"  # type: ignore[arg-type]
    for folder in (None, 5, "gs://bucket/run"):
        with pytest.raises(T2TError, match="output_dir="):
            RunConfig(folder)  # type: ignore[arg-type]
