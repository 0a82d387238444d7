"""The kind of a model to import is told by content, whatever else is in its folder."""

import json
import zipfile

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.addons.imports.kinds import MARIAN, T2T, TRANSFORMERS, kind_to_import
from t2t_revival.cli.support.problem_flags import ProblemFlags
from tests.support.marian_models import write_marian, write_marian_mt


def of_t2t(folder):
    folder.mkdir(exist_ok=True)
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-7"\n')
    (folder / "model.ckpt-7.index").write_bytes(b"")
    return folder


def foreign_files(folder):
    """Adds files of other programs, which are no models."""
    np.savez(folder / "embeddings.npz", a=np.ones(2))
    (folder / "config.json").write_text('{"port": 80}')
    (folder / "notes.bin").write_bytes(b"text")
    return folder


def test_other_files_do_not_matter(tmp_path):
    folder = foreign_files(of_t2t(tmp_path / "t2t"))
    assert kind_to_import(folder) is T2T
    assert kind_to_import(folder / "model.ckpt-7") is kind_to_import(folder / "model.ckpt-7.index") is T2T
    assert kind_to_import(foreign_files(write_marian(tmp_path / "marian").parent)) is MARIAN
    theirs = write_marian_mt(tmp_path / "theirs")
    np.savez(theirs / "embeddings.npz", a=np.ones(2))
    assert kind_to_import(theirs) is kind_to_import(theirs / "config.json") is TRANSFORMERS


def test_two_models_in_a_folder_are_refused_with_the_way_to_choose(tmp_path):
    folder = of_t2t(write_marian(tmp_path / "both").parent)
    with pytest.raises(T2TError) as error:
        kind_to_import(folder)
    message = str(error.value)
    assert "model.ckpt-7.index is of tensor2tensor, model.npz is of Marian" in message
    assert f"--checkpoint={folder}/model.ckpt-7.index" in message
    assert kind_to_import(folder / "model.ckpt-7.index") is T2T
    assert kind_to_import(folder / "model.npz") is MARIAN


def converted(folder):
    """Yields models for other engines: CTranslate2's and Argos Translate's."""
    model = folder / "ct2" / "model.bin"
    model.parent.mkdir()
    model.write_bytes(b"\6\0\0\0\20\0TransformerSpec\0" + bytes(64))
    yield from (model.parent, model)
    with zipfile.ZipFile(folder / "en_de.argosmodel", "w") as package:
        package.writestr("translate-en_de-1_0/metadata.json", json.dumps({"from_code": "en"}))
    yield folder / "en_de.argosmodel"


def test_models_of_other_engines_are_refused(tmp_path):
    for path in converted(tmp_path):
        with pytest.raises(T2TError, match="no model: it lacks"):
            kind_to_import(path)


def test_what_is_no_model_is_told_what_was_looked_for(tmp_path):
    looked = (
        r"no model: it lacks model\.ckpt-\*\.index with checkpoint, config\.json with a model_type, "
        r"config\.json with model_type=m2m_100, \.npz"
    )
    with pytest.raises(T2TError, match=looked):
        kind_to_import(foreign_files(tmp_path))
    with pytest.raises(T2TError, match="no such file or folder"):
        kind_to_import(tmp_path / "none")
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(T2TError, match="an output_dir already: give it to the other commands"):
        kind_to_import(tmp_path)


def test_commands_for_output_dirs_name_the_import(tmp_path):
    for folder, kind in (
        (write_marian(tmp_path / "marian").parent, "Marian"),
        (write_marian_mt(tmp_path / "theirs"), "transformers"),
    ):
        command = f"t2t-import-checkpoint --checkpoint={folder} --output_dir={folder}_imported"
        message = f"{folder} holds a model of {kind}. Import it: {command}"
        with pytest.raises(T2TError, match=message):
            ProblemFlags().refuse_t2t(folder, "warm_start_from")
    assert ProblemFlags().refuse_t2t(foreign_files(tmp_path)) == tmp_path


@pytest.mark.parametrize("content", ["[1]", "3", "{"])
def test_settings_that_are_no_mapping_are_left_to_their_reader(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    assert kind_to_import(tmp_path).name == "transformers"
