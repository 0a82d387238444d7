"""Generated files and the batches of a training are, to the bit, those that data.json was written from."""

import json

import pytest

from tests.contract.write_data import KINDS, PATH, READINGS, batches_of, dev_batches_of, files_of
from tests.support.data_kinds import write_sources

CONTRACT = json.loads(PATH.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return write_sources(tmp_path_factory.mktemp("sources"))


@pytest.mark.parametrize("kind", KINDS)
def test_files(kind, sources):
    assert files_of(kind, sources) == CONTRACT["files"][kind]


@pytest.mark.parametrize("name", READINGS)
def test_training_batches(name, sources):
    expected = CONTRACT["batches"][name]
    assert batches_of(name, sources) == expected
    assert batches_of(name, sources, stop=18) == expected, "resumed after 18 batches"


@pytest.mark.parametrize("kind", KINDS)
def test_dev_batches(kind, sources):
    assert dev_batches_of(kind, sources) == CONTRACT["dev_batches"][kind]
