"""`t2t-trainer` with subword dropout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2t_revival import experiment
from t2t_revival.cli import trainer
from t2t_revival.data.vocabulary import open_vocabulary
from t2t_revival.errors import T2TError
from t2t_revival.training.loop import TrainingData
from tests.cli import test_trainer
from tests.cli.test_trainer import SMALL, command

pytestmark = pytest.mark.slow
corpus, data = test_trainer.corpus, test_trainer.data  # fixtures


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_training_with_subword_dropout_has_the_splits_of_its_vocabulary(
    dropout: float, corpus: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[TrainingData] = []

    def training(training_data: TrainingData, *_: object) -> None:
        given.append(training_data)
        raise T2TError("seen enough")

    monkeypatch.setattr(experiment, "Training", training)
    hparams = f"{SMALL},subword_dropout={dropout}"
    assert trainer.main(command(corpus, data, tmp_path / "out", hparams=hparams)) == 1
    expected = open_vocabulary(next(data.glob("vocab.*"))).splits()
    (found,) = (training_data.splits for training_data in given)
    assert (found is None) == (not dropout)
    for side in found or ():  # which share one vocabulary
        for ours, theirs in zip(side, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_subword_dropout_of_an_unknown_side(
    corpus: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hparams = f"{SMALL},subword_dropout=0.1,subword_dropout_side=left"
    assert trainer.main(command(corpus, data, tmp_path / "out", hparams=hparams)) == 1
    said = "hparams: subword_dropout_side='left' is not one of both, source, target"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
