"""Models with random weights, small enough that all their outputs can be looked at."""

import functools
import itertools

import keras
import numpy as np
import tensorflow as tf

from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer

PAD, EOS = 0, 1
TINY = HParams(num_hidden_layers=2, hidden_size=8, filter_size=16, num_heads=2)


IDS = tf.TensorSpec([None, None], tf.int32)


@functools.cache
def compiled(vocab_size, hparams):
    """One model and its search for all tests: only the weights change."""
    model = Transformer(hparams, vocab_size)
    return model, BeamSearch(model)


@functools.cache
def _random_weights(vocab_size, seed, hparams):
    keras.utils.set_random_seed(seed)
    return Transformer(hparams, vocab_size).get_weights()


def tiny(vocab_size, seed=0, hparams=TINY, scale=3.0):
    """A model with random weights, and its search; the larger `scale`, the surer is the model."""
    model, search = compiled(vocab_size, hparams)
    model.set_weights(_random_weights(vocab_size, seed, hparams))
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * scale)
    return model, search


@functools.cache
def _graph(model):
    """The whole model as one graph for all lengths: called eagerly, it would take a hundred times as long."""
    return tf.function(
        lambda sources, targets: model({"inputs": sources, "targets": targets}), input_signature=[IDS, IDS]
    )


def forget():
    """Drops the models and graphs that are cached here."""
    for cached in (compiled, _random_weights, _graph):
        cached.cache_clear()


def logits_of(model, sources, targets):
    """Logits of the whole model, float64 [batch, target, vocab], in NumPy."""
    ids = [np.asarray(x, np.int32) for x in (sources, targets)]
    return np.asarray(_graph(model)(*ids), np.float64)


def log_probs_of(model, source, outputs):
    """Log-probability of each token of `outputs` [n, length] by the whole model, in NumPy."""
    logits = logits_of(model, np.repeat([source], len(outputs), axis=0), outputs)
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
