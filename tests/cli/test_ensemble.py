"""`--ensemble`: several models are decoded, scored and exported as one."""

import shutil

import pytest

from t2t_revival import Translator
from t2t_revival.cli import decoder, exporter
from t2t_revival.decoding.files import resumable
from t2t_revival.decoding.trained_models import load_translator, open_models
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.signatures import DEFAULT

LINES = ["the dog sees dev1 houses", "", "houses", "the dog sees the dog sees the dog"]


@pytest.fixture
def folders(out, tmp_path, write_checkpoint):
    """Two output_dirs of one vocabulary, with other weights."""
    other = shutil.copytree(out, tmp_path / "other", ignore=shutil.ignore_patterns("*.npz"))
    write_checkpoint(other, 9)
    return [out, other]


def flag(folders):
    return f"--ensemble={','.join(map(str, folders))}"


def texts(translator):
    return [outputs[0].text for outputs in translator.nbest(LINES)]


@pytest.mark.slow
def test_a_file_is_decoded_as_by_one(folders, tmp_path, capsys):
    (tmp_path / "in").write_text("\n".join(LINES) + "\n")
    flags = [
        flag(folders),
        f"--decode_from_file={tmp_path / 'in'}",
        f"--decode_to_file={tmp_path / 'out.de'}",
    ]
    assert decoder.main(["t2t-decoder", *flags]) == 0
    assert "(an ensemble of 2)" in capsys.readouterr().err
    together = load_translator(open_models(folders, "ensemble"))
    found = (tmp_path / "out.de").read_text().splitlines()
    assert found == texts(together)
    assert found not in [texts(Translator.load(folder)) for folder in folders]
    assert [one.step for one in (together.checkpoint, *together.more_checkpoints)] == [7, 9]
    by_logarithms = load_translator(open_models(folders, "ensemble"), mean="logarithms")
    origins = [resumable.origin_of(one, "texts", LINES) for one in (together, by_logarithms)]
    assert origins[0] != origins[1], "an interrupted run is not resumed with another mean"
    assert origins[0].values["checkpoint"].count(" with weights ") == 2


@pytest.mark.slow
def test_it_is_one_exported_model(folders, tmp_path, capsys):
    asked = [flag(folders), f"--export_dir={tmp_path / 'export'}"]
    assert exporter.main(["t2t-exporter", *asked]) == 0
    found = FolderModel(tmp_path / "export").predict(DEFAULT, {"inputs": LINES})
    together = load_translator(open_models(folders, "ensemble"))
    assert [row[0].decode() for row in found["outputs"]] == texts(together)
