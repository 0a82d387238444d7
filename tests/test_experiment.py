"""Curves of earlier versions, forked processes, and paths of a training."""

from pathlib import Path

import pytest

from t2t_revival import registry
from t2t_revival.errors import T2TError
from t2t_revival.experiment import Experiment, _label_curves
from t2t_revival.training.curve_files import DEV, TRAIN, read_segments
from t2t_revival.training.run_config import RunConfig
from t2t_revival.training.state import Fingerprints
from t2t_revival.utils import forks


@pytest.mark.parametrize(
    ("data_dir", "measured_on", "said"),
    [("data", "d", "taken to be measured on data"), ("other", "unknown", "not compared with later ones")],
)
def test_evaluations_of_earlier_versions(tmp_path: Path, data_dir: str, measured_on: str, said: str) -> None:
    """Labels them with today's data if run.json names the same folder."""
    for curve in (DEV, TRAIN):
        (tmp_path / f"{curve}.csv").write_text("step,target_tokens,loss,bleu\n1,1,3,9\n2,2,2,10\n")
    fingerprints = Fingerprints("t", "d", "way")
    (note,) = _label_curves(tmp_path, fingerprints, "data", data_dir)
    assert note == f"dev.csv: 2 evaluations do not name their data: {said}"
    found = {score: read_segments(tmp_path, DEV, score) for score in ("loss", "bleu")}
    assert [segment.measured_on for segment in found["loss"]] == [measured_on]
    way = "d way" if data_dir == "data" else "unknown unknown"
    assert [segment.measured_on for segment in found["bleu"]] == [way]
    assert _label_curves(tmp_path, fingerprints, "data", "data") == [], "once, and for ever"


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
