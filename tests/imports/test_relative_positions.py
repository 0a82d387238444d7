"""`transformer_relative`, as T2T 1.15.7 itself computes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from t2t_revival import HParams, T2TError, Translator
from t2t_revival.model_folder import Run
from tests.support.t2t_model import imported, stored_variables, write


@pytest.fixture
def known(reference_dir: Path) -> dict[str, np.ndarray]:
    return dict(np.load(reference_dir / "relative.npz"))


def test_logits_are_t2ts(tmp_path: Path, known: dict[str, np.ndarray]) -> None:
    settings = json.loads(str(known["hparams"]))
    write(tmp_path / "t2t", settings, stored_variables(known), str(known["vocabulary"]).encode())
    imported(tmp_path)
    hparams, run = HParams.load(tmp_path / "out"), Run.load(tmp_path / "out")
    assert (hparams.pos, hparams.max_relative_position) == ("relative", 3)
    assert run.hparams_set == "transformer_relative"
    model = Translator.load(tmp_path / "out").model
    found = np.asarray(model({"inputs": known["inputs"], "targets": known["targets"]}))
    mask = known["targets"] != 0
    difference = np.abs(found[mask] - known["logits"][mask]).max()
    print(f"logits differ by {difference:.1e} at most")
    assert difference < 1e-5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pos": "timing"}, r"pos='timing' with self_attention_type='dot_product_relative': not supported"),
        (
            {"self_attention_type": "dot_product"},
            r"pos=None with self_attention_type='dot_product': not supp",
        ),
        (
            {"self_attention_type": "dot_product_relative_v2"},
            r"self_attention_type='dot_product_relative_v2'",
        ),
        ({"max_relative_position": 4}, r"relative_positions_keys/embeddings have the shape \(7, 4\)"),
    ],
)
def test_other_combinations_are_refused(
    tmp_path: Path, known: dict[str, np.ndarray], changes: dict[str, object], message: str
) -> None:
    settings = {**json.loads(str(known["hparams"])), **changes}
    write(tmp_path / "t2t", settings, stored_variables(known), str(known["vocabulary"]).encode())
    with pytest.raises(T2TError, match=message):
        imported(tmp_path)
