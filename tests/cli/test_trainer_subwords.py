"""`t2t-trainer` with subword dropout."""

import numpy as np
import pytest

from t2t_revival import T2TError, experiment
from t2t_revival.data.vocabulary import open_vocabulary
from tests.support.trainer_command import SMALL, train


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_training_with_subword_dropout_has_the_splits_of_its_vocabulary(
    dropout, trained, tmp_path, monkeypatch
):
    given = []

    def training(training_data, *_):
        given.append(training_data)
        raise T2TError("seen enough")

    monkeypatch.setattr(experiment, "Training", training)
    hparams = f"{SMALL},subword_dropout={dropout}"
    assert train(trained / "data", tmp_path / "out", hparams=hparams) == 1
    expected = open_vocabulary(next((trained / "data").glob("vocab.*"))).splits()
    (found,) = (training_data.splits for training_data in given)
    assert (found is None) == (not dropout)
    for side in found or ():  # which share one vocabulary
        for ours, theirs in zip(side, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
