"""One tiny translator for all tests of serving."""

from unittest import mock

import keras
import pytest

from t2t_revival.decoding.translator import Translator
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer


@pytest.fixture(scope="module")
def make_translator(vocabulary):
    """Makes translators with the same random weights: (options, max_length, translations, hparams)."""

    def make(options, max_length=None, translations=None, **changes):
        with mock.patch("tensorflow.random.set_seed"):  # which takes SentencePiece from other graphs
            keras.utils.set_random_seed(3)
        hparams = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, **changes)
        model = Transformer(hparams, vocabulary.size)
        return Translator(model, vocabulary, options, max_length, translations=translations)

    return make
