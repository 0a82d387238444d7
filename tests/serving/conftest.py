"""One tiny translator, and its export, for all tests of serving."""

from functools import partial

import pytest

from t2t_revival.serving.folder_model import FolderModel
from tests.support import exported


@pytest.fixture(scope="module")
def make_translator(vocabulary):
    """Makes translators with the same weights: (options, max_length, translations, changes of hparams)."""
    return partial(exported.make_translator, vocabulary)


@pytest.fixture(scope="module")
def translator(make_translator):
    """The translator that is exported."""
    return make_translator()


@pytest.fixture(scope="module")
def served(exported_version):
    """The export in this process."""
    model = FolderModel(exported_version)
    yield model
    model.close()
