"""Versions that come, go, and are damaged."""

import asyncio
import shutil
import threading
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


def test_a_version_that_is_copied_slowly_is_loaded_when_it_is_complete(folder):
    """Its model is whole when saved_model.pb is, but other files of the folder may come later."""
    said = []
    model = ServedModel("m", folder, say=said.append)
    write(folder, 1)
    look(model)
    path = write(folder, 2, "ba")
    for text in ("bad", "bad but", "bad but better"):
        (path / "variables").mkdir(exist_ok=True)
        (path / "variables" / "data").write_text(text)
        assert look(model)[2] == "END"
    assert [line for line in said if "version 2" in line] == [
        "m: version 2 is being written: it is loaded when it is complete"
    ]
    for _ in range(8):
        assert look(model) == {1: "AVAILABLE", 2: "END"}
    assert said[-1] == f"m: version 2 is refused: {path}: damaged"
    write(folder, 2)
    assert [look(model)[2] for _ in range(2)] == ["END", "AVAILABLE"]
    assert said[2:] == [
        f"m: version 2 is refused: {path}: damaged",
        "m: version 2 is served",
        "m: version 1 is no longer served",
    ]


def test_a_version_that_changes_while_it_is_loaded_is_not_served(folder, monkeypatch):
    opened = []

    def load(path):
        opened.append(Loaded(path.name))
        if len(opened) == 1:
            (path / "late").write_text("")
        return opened[-1]

    monkeypatch.setattr(versions, "_open", load)
    model = ServedModel("m", folder, say=lambda text: None)
    write(folder, 1)
    assert look(model) == {1: "END"}
    assert opened[0].is_closed
    assert [look(model)[1] for _ in range(4)][-1] == "AVAILABLE"
    assert model.find()[1] is opened[1]


def test_a_server_starts_with_a_version_that_is_still_copied(folder, monkeypatch):
    monkeypatch.setattr(versions, "LOOK_SECS", 0.05)
    model = ServedModel("m", folder, say=lambda text: None)
    write(folder, 1, "bad")
    threading.Timer(0.3, write, [folder, 1]).start()
    asyncio.run(model.start(None))
    assert model.find() == (1, "1")
    monkeypatch.setattr(versions, "WRITTEN_SECS", 0.1)
    write(folder, 2, "bad")
    other = ServedModel("m", folder / "2", say=lambda text: None)
    with pytest.raises(T2TError, match="m: version 2: damaged"):
        asyncio.run(other.start(None))


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
