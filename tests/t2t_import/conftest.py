"""An imported model for what uses one."""

import pytest

from tests.support.t2t_model import import_one


@pytest.fixture
def out(tmp_path, subwords_file):
    """An output_dir made of one of T2T's, whose vocabulary is padded."""
    return import_one(tmp_path, subwords_file)
