"""Versions that come, go, and are damaged."""

import asyncio
import shutil
from types import MappingProxyType

import pytest

from t2t_revival import T2TError
from t2t_revival.addons.server import versions
from t2t_revival.addons.server.predict import RequestError
from t2t_revival.addons.server.versions import ServedModel


class Loaded(str):
    """Stands for a model."""

    is_closed, signature_defs = False, MappingProxyType({})

    def close(self):
        self.is_closed = True


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An export_dir, whose versions are models if their file says so."""

    def load(path):
        if (path / "saved_model.pb").read_text() != "good":
            raise T2TError(f"{path}: damaged")
        return Loaded(path.name)

    monkeypatch.setattr(versions, "_open", load)
    return tmp_path


def write(folder, number, content="good"):
    path = folder / str(number)
    path.mkdir(exist_ok=True)
    (path / "saved_model.pb").write_text(content)
    return path


def look(model, in_use=lambda model: False):
    asyncio.run(model.update(in_use))
    return {number: version.state for number, version in model.versions.items()}


def test_a_new_version_takes_over_when_it_is_loaded(folder):
    said = []
    model = ServedModel("m", folder, say=said.append)
    assert look(model) == {}
    assert not model.is_ready
    write(folder, 1)
    assert look(model) == {1: "AVAILABLE"}
    assert model.find() == (1, "1")
    first = model.find()[1]
    write(folder, 2)
    assert look(model, lambda used: used == "1") == {1: "UNLOADING", 2: "AVAILABLE"}
    assert model.find() == (2, "2")
    with pytest.raises(RequestError, match="Servable not found for request: Specific, 1"):
        model.find(1)
    assert look(model) == {1: "END", 2: "AVAILABLE"}
    assert model.versions[1].model is None
    assert first.is_closed
    assert said == ["m: version 1 is served", "m: version 2 is served", "m: version 1 is no longer served"]
    assert look(model) == {1: "END", 2: "AVAILABLE"}
    assert len(said) == 3


def test_a_damaged_version_is_refused_once_and_loaded_when_it_is_mended(folder):
    said = []
    model = ServedModel("m", folder, say=said.append)
    write(folder, 1)
    look(model)
    path = write(folder, 2, "bad")
    for _ in range(3):
        assert look(model) == {1: "AVAILABLE", 2: "END"}
    assert model.find() == (1, "1")
    assert said[1:] == [f"m: version 2 is refused: {path}: damaged"]
    assert model.status(2)["model_version_status"][0]["status"]["error_message"] == "version 2: damaged"
    shutil.rmtree(path)
    look(model)
    write(folder, 2)
    assert look(model) == {1: "END", 2: "AVAILABLE"}


def test_a_version_that_is_removed_is_served_until_there_is_another(folder):
    model = ServedModel("m", folder, say=lambda text: None)
    shutil.rmtree(write(folder, 1), ignore_errors=look(model) is None)
    write(folder, 1)
    look(model)
    shutil.rmtree(folder / "1")
    assert look(model) == {1: "AVAILABLE"}
    write(folder, 2)
    assert look(model) == {1: "END", 2: "AVAILABLE"}


def test_several_versions_and_labels(folder):
    for number in range(1, 6):
        write(folder, number)
    model = ServedModel("m", folder, labels={"stable": 1}, keep=2, say=lambda text: None)
    assert look(model) == {4: "AVAILABLE", 5: "AVAILABLE", 1: "AVAILABLE"}
    assert model.find() == (5, "5")
    assert model.find(4) == (4, "4")
    assert model.find(label="stable") == (1, "1")


def test_a_folder_that_is_a_version(folder):
    path = write(folder, 7)
    model = ServedModel("m", path, say=lambda text: None)
    assert look(model) == {7: "AVAILABLE"}
