"""One vocabulary and one tiny translator for all tests of serving."""

import keras
import pytest

from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.decoding.translator import Translator
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer

TEXT = [f"the {noun} sees {number} houses . der {noun}" for noun in ("dog", "cat") for number in range(9)]


@pytest.fixture(scope="session")
def vocabulary_file(tmp_path_factory):
    """A vocabulary of 310 pieces."""
    return Vocabulary.train(TEXT, tmp_path_factory.mktemp("vocabulary") / "v.spm", 310).path


@pytest.fixture(scope="module")
def vocabulary(vocabulary_file):
    """A vocabulary per module, since a new random seed makes TensorFlow lose SentencePiece's resources."""
    return Vocabulary(vocabulary_file)


@pytest.fixture(scope="module")
def make_translator(vocabulary):
    """Makes translators with the same random weights: (options, max_length, translations, hparams)."""

    def make(options, max_length=None, translations=None, **changes):
        keras.utils.set_random_seed(3)
        hparams = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, **changes)
        model = Transformer(hparams, vocabulary.size)
        return Translator(model, vocabulary, options, max_length, translations=translations)

    return make
