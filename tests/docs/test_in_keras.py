"""The page "In Keras alone": its code runs as it stands, in its order."""

import re
from pathlib import Path

import keras
import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "in_keras.md"


@pytest.mark.slow
def test_its_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(1)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 7
    names = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    losses = names["history"].history["loss"]
    assert losses[-1] < 0.9 * losses[0]
    assert 1.0 < names["paper"].history["loss"][0] < np.log(12)  # a mean over tokens, as the page says
    accuracies = names["history"].history["sparse_categorical_accuracy"]
    assert accuracies[-1] > accuracies[0]
    assert np.stack(names["outputs"]).shape == (7, 4)
    assert tuple(names["weights"].encoder_decoder.shape) == (1, 2, 4, 7, 7)
    assert {path.name for path in tmp_path.iterdir()} == {"reverse.keras", "classifier.keras"}
