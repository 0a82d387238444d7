"""Generated files and the batches of a training are, to the bit, those that data.json was written from."""

import json
import shutil
from pathlib import Path

import pytest

from t2t_revival import T2TError, registry
from t2t_revival.model_folder import Run
from tests.contract.write_data import KINDS, PATH, READINGS, batches_of, dev_batches_of, files_of
from tests.support.data_kinds import write_sources

CONTRACT = json.loads(PATH.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return write_sources(tmp_path_factory.mktemp("sources"))


def recorded(found, stored):
    """Returns what was found of the fields that are stored: metadata may have more since."""
    if not (isinstance(found, dict) and isinstance(stored, dict)):
        return found
    return {name: recorded(value, stored[name]) for name, value in found.items() if name in stored}


@pytest.mark.parametrize("kind", KINDS)
def test_files(kind, sources):
    found, stored = files_of(kind, sources), CONTRACT["files"][kind]
    assert found.keys() == stored.keys()
    assert recorded(found, stored) == stored


STORED = Path(__file__).with_name("stored_training")  # written before files had Unicode forms


def test_what_version_0_2_0_has_written_is_read():
    data, run = registry.problem("translate_ende").open(STORED / "data"), Run.load(STORED)
    assert data.metadata.splits["train"].examples == sum(1 for _ in data.text("train"))
    assert (data.metadata.unicode_forms, data.metadata.normalize) == (("nfc", "nfc"), "")
    assert (run.unicode_form, run.format_version) == ("nfc", 1)


@pytest.mark.parametrize("name", READINGS)
def test_training_batches(name, sources):
    expected = CONTRACT["batches"][name]
    assert batches_of(name, sources) == expected
    assert batches_of(name, sources, stop=18) == expected, "resumed after 18 batches"


@pytest.mark.parametrize("kind", KINDS)
def test_dev_batches(kind, sources):
    assert dev_batches_of(kind, sources) == CONTRACT["dev_batches"][kind]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("data/translate_ende.meta.json", lambda values: values.pop("origins"), "it lacks 'origins'"),
        ("data/translate_ende.meta.json", lambda values: values.update(later=1), "it has the field 'later'"),
        ("run.json", lambda values: values.pop("fingerprint"), "it lacks 'fingerprint'"),
        ("run.json", lambda values: values.update(format_version=2), "format 2, and this one reads 1"),
    ],
)
def test_a_file_of_another_version_is_not_called_corrupt(tmp_path, name, change, said):
    path = shutil.copytree(STORED, tmp_path / "stored") / name
    values = json.loads(path.read_text(encoding="utf-8"))
    values.pop("checksum", None)
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")
    is_run = name == "run.json"
    with pytest.raises(T2TError) as found:
        Run.load(path.parent) if is_run else registry.problem("translate_ende").open(path.parent)
    assert f"{path}: written by another version of t2t_revival ({said})" in str(found.value)
    assert is_run or "t2t-datagen with the same flags and --overwrite" in str(found.value)
