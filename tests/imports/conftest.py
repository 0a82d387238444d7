"""Output_dirs of tensor2tensor, and an imported model."""

import numpy as np
import pytest

from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from tests.support.t2t_model import SETTINGS, import_one, variables, write


@pytest.fixture(scope="module")
def vocab_size(subwords_file):
    return SubwordVocabulary(subwords_file).size


@pytest.fixture
def t2t(tmp_path, subwords_file, vocab_size):
    """Writes an output_dir of T2T's and returns its settings and variables: (changes, more variables)."""

    def make(changes=(), **more):
        settings = {**SETTINGS, **dict(changes)}
        arrays = variables(settings, vocab_size)
        extra = {name: np.zeros(shape, np.float32) for name, shape in more.items()}
        write(tmp_path / "t2t", settings, {**arrays, **extra}, subwords_file.read_bytes())
        return settings, arrays

    return make


@pytest.fixture
def out(tmp_path, subwords_file):
    """An output_dir made of one of T2T's, whose vocabulary is padded."""
    return import_one(tmp_path, subwords_file)
