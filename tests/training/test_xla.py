"""XLA computes what TensorFlow does without it."""

from pathlib import Path

import numpy as np
import pytest
from copy_task import HPARAMS, VOCAB, write_shards

from t2t_revival.training.loop import train
from t2t_revival.training.session import Settings, Step


@pytest.mark.slow
@pytest.mark.parametrize("window", [0, 3])
def test_losses_are_those_without_xla(window: int, tmp_path: Path) -> None:
    """Two buckets, so that two shapes are compiled; the last batch of an epoch is filled up."""
    shards = write_shards(tmp_path, shards=1, examples=200)
    hparams = HPARAMS.replace(
        layer_prepostprocess_dropout=0.0,
        attention_window=window,
        train_steps=10,
        max_length=9,
        min_length_bucket=6,
        length_bucket_step=1.5,
    )
    losses: dict[bool, list[float]] = {False: [], True: []}
    for xla, found in losses.items():
        settings = Settings(tmp_path / f"xla-{xla}", xla=xla, log_steps=1)
        train(shards, hparams, VOCAB, settings, None, lambda n, to=found: _note(n, to))
    assert len(losses[True]) == 10
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-5)


def _note(news: object, losses: list[float]) -> None:
    if isinstance(news, Step):
        losses.append(news.loss)
