"""The corpus of lines that the tests of data generation share."""

import pytest

from tests.support.line_corpus import write_corpus


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus")
