"""An imported model for what uses one."""

import pytest

from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.t2t_import.importer import ImportSource, import_checkpoint
from tests.support.t2t_model import SETTINGS, variables, write


@pytest.fixture
def out(tmp_path, subwords_file):
    """An output_dir made of one of T2T's, whose vocabulary is padded."""
    settings = {**SETTINGS, "vocab_divisor": 32, "max_length": 40}
    arrays = variables(settings, SubwordVocabulary(subwords_file).size)
    write(tmp_path / "t2t", settings, arrays, subwords_file.read_bytes())
    import_checkpoint(ImportSource(tmp_path / "t2t"), tmp_path / "out")
    return tmp_path / "out"
