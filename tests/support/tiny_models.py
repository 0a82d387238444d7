"""Models with random weights, small enough that all their outputs can be looked at."""

import functools
import itertools

import keras
import numpy as np

from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer

PAD, EOS = 0, 1
TINY = HParams(num_hidden_layers=2, hidden_size=8, filter_size=16, num_heads=2)


@functools.cache
def compiled(vocab_size, hparams):
    """One model and its search for all tests: only the weights change."""
    model = Transformer(hparams, vocab_size)
    return model, BeamSearch(model)


def tiny(vocab_size, seed=0, hparams=TINY, scale=3.0):
    """A model with random weights, and its search; the larger `scale`, the surer is the model."""
    keras.utils.set_random_seed(seed)
    model, search = compiled(vocab_size, hparams)
    model.set_weights(Transformer(hparams, vocab_size).get_weights())
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * scale)
    return model, search


def log_probs_of(model, source, outputs):
    """Log-probability of each token of `outputs` [n, length] by the whole model, in NumPy."""
    sources = np.repeat(np.array([source], np.int32), len(outputs), axis=0)
    logits = np.asarray(model({"inputs": sources, "targets": np.asarray(outputs)}), np.float64)
    logits -= logits.max(-1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    return np.take_along_axis(logits, np.asarray(outputs)[:, :, None], axis=2)[:, :, 0]


def scores_of(model, source, outputs, alpha):
    log_probs = log_probs_of(model, source, outputs) * (np.asarray(outputs) != PAD)
    lengths = (np.asarray(outputs) != PAD).sum(1)
    return log_probs.sum(1) / ((5 + lengths) / 6) ** alpha


def all_outputs(vocab_size, limit):
    """Every sequence of at most `limit` tokens that ends with EOS and holds no PAD, padded."""
    words = range(EOS + 1, vocab_size)
    rows = [
        (*prefix, EOS, *[PAD] * (limit - length - 1))
        for length in range(limit)
        for prefix in itertools.product(words, repeat=length)
    ]
    return np.array(rows, np.int32)


def trimmed(ids):
    """Ids without the padding behind them, as a list."""
    ids = list(np.asarray(ids))
    return ids[: ids.index(PAD)] if PAD in ids else ids
