"""Corpora and finished data that the tests of this folder share."""

import functools

import pytest

from t2t_revival.data import workers
from t2t_revival.data.vocabulary import open_vocabulary
from tests.support.data_kinds import KINDS, open_problem, write_sources
from tests.support.line_corpus import snapshot, write_corpus


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus")


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """The sources of all kinds of data."""
    return write_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="session")
def whole(sources, tmp_path_factory):
    """Returns the files of a kind of data that was made at once, by this process alone."""
    folder = tmp_path_factory.mktemp("whole")

    @functools.cache
    def files(kind):
        open_problem(KINDS[kind], sources).generate_data(folder / kind)
        return snapshot(folder / kind)

    return files


@pytest.fixture(scope="module", params=["spm", "subwords"])
def either(request, vocabulary_file, subwords_file):
    """A vocabulary, whose kind is told by the name of its file."""
    return open_vocabulary(vocabulary_file if request.param == "spm" else subwords_file)


@pytest.fixture
def two_processes(monkeypatch):
    """Has two processes make shards, which small corpora are not worth."""
    monkeypatch.setattr(workers, "PAIRS_PER_WORKER", 20)
    monkeypatch.setattr(workers, "cores", lambda: 2)
