"""Checkpoints written by T2T, kept beside the repository, give T2T's logits and outputs."""

import json
from pathlib import Path

import numpy as np
import pytest

from t2t_revival import Translator
from t2t_revival.addons.imports.t2t import ImportSource, import_checkpoint
from t2t_revival.addons.imports.t2t_folder import T2TSettings
from t2t_revival.serving.module import ServingModule

DATA = Path(__file__).parents[3] / "shared" / "data"
T2T, MULTI30K = DATA / "t2t_reference", DATA / "multi30k"
TRAINED = "prenorm_small"

pytestmark = pytest.mark.skipif(not T2T.is_dir(), reason=f"no {T2T.name} beside the repository")


@pytest.fixture(scope="module", params=[TRAINED, "postnorm_tiny"])
def name(request):
    return request.param


@pytest.fixture(scope="module")
def translator(name, tmp_path_factory):
    out = tmp_path_factory.mktemp(name)
    import_checkpoint(ImportSource(T2T / name), out)
    return Translator.load(out)


def test_ids_and_logits(translator, name):
    known = np.load(T2T / name / "teacher_forced.npz")
    inputs, targets = (known[side].reshape(8, -1) for side in ("inputs", "targets"))
    pairs = [
        line.split("\t") for line in (T2T / name / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    ]
    for side, ids in ((0, inputs), (1, targets)):
        for pair, row in zip(pairs, ids, strict=True):
            assert [*translator.vocabulary.encode(pair[side]), 1] == row[row != 0].tolist()
    found = np.asarray(translator.model({"inputs": inputs, "targets": targets}))
    difference = np.abs(found - known["logits"].reshape(found.shape)).max()
    print(f"{name}: logits differ by {difference:.1e} at most")
    assert difference < 1e-4


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", [TRAINED], scope="module")
def test_outputs(translator, name):
    lines = (MULTI30K / "test.en").read_text(encoding="utf-8").splitlines()
    expected = (T2T / name / "test2016.beam4.alpha0.6.de").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(expected) == 1000
    found = translator.translate(lines)
    differing = [number for number, pair in enumerate(zip(found, expected, strict=True)) if len({*pair}) > 1]
    print(f"{name}: {1000 - len(differing)} of 1000 outputs equal")
    assert not differing
    module = ServingModule(translator)
    served = module.translate(lines[:100])["outputs"].numpy()
    assert [row[0].decode() for row in served] == expected[:100]


def test_every_setting_of_t2ts_sets_is_known(tmp_path):
    sets = json.loads((T2T / "hparams.json").read_text(encoding="utf-8"))
    for values in sets.values():
        hparams, notes = T2TSettings(tmp_path / "hparams.json", values, {}).hparams()
        assert not notes
        assert hparams.hidden_size == values["hidden_size"]
