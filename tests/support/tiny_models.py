"""Models with random weights, small enough that all their outputs can be looked at."""

import itertools

import keras
import numpy as np
import tensorflow as tf

from t2t_revival import HParams, Transformer
from t2t_revival.hparams.variants import VARIANTS
from tests.support.searches import cached
from tests.support.searches import forget as forget  # called by conftest.py

PAD, EOS = 0, 1
TINY = HParams(num_hidden_layers=2, hidden_size=8, filter_size=16, num_heads=2)
PRE_NORM = {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}
VARIATIONS: dict[str, dict] = {  # of the paper's model, by hparams
    value: {name: value}
    for name in ("pos", "ffn_activation", "norm_type")
    for value, row in VARIANTS[name].items()
    if row.made_by and value != getattr(TINY, name)
} | {
    "relative": {"pos": "relative", "max_relative_position": 2, "use_target_space_embedding": True},
    "biases": {"projection_bias": True, "softmax_bias": True},
    "modern": {"pos": "rotary", "ffn_activation": "swiglu", "norm_type": "rms", **PRE_NORM},
}

IDS = tf.TensorSpec([None, None], tf.int32)


@cached
def shared(vocab_size, hparams):
    """One model for all tests, and so one graph of each search: only the weights change."""
    return Transformer(hparams, vocab_size)


@cached
def _random_weights(vocab_size, seed, hparams):
    keras.utils.set_random_seed(seed)
    return Transformer(hparams, vocab_size).get_weights()


def tiny(vocab_size, seed=0, hparams=TINY, scale=3.0):
    """A model with random weights; the larger `scale`, the surer is the model."""
    model = shared(vocab_size, hparams)
    model.set_weights(_random_weights(vocab_size, seed, hparams))
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * scale)
    return model


@cached
def _graph(model):
    """The whole model as one graph for all lengths: called eagerly, it would take a hundred times as long."""
    return tf.function(
        lambda sources, targets: model({"inputs": sources, "targets": targets}), input_signature=[IDS, IDS]
    )


def logits_of(model, sources, targets):
    """Logits of the whole model, float64 [batch, target, vocab], in NumPy."""
    ids = [np.asarray(x, np.int32) for x in (sources, targets)]
    return np.asarray(_graph(model)(*ids), np.float64)


def log_softmax(logits):
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def log_probs_of(model, source, outputs, without_pad=False, not_empty=False):
    """Log-probability of each token of `outputs` [n, length] by the whole model, in NumPy.

    It may be that among all tokens but PAD, and, at the first place, EOS.
    """
    logits = logits_of(model, np.repeat([source], len(outputs), axis=0), outputs)
    if without_pad:
        logits[:, :, PAD] = -1e4
    if not_empty:
        logits[:, 0, EOS] = -1e4
    return np.take_along_axis(log_softmax(logits), np.asarray(outputs)[:, :, None], axis=2)[:, :, 0]


def scores_of(model, source, outputs, alpha, is_restricted=False):
    is_token = np.asarray(outputs) != PAD
    log_probs = log_probs_of(model, source, outputs, is_restricted, is_restricted) * is_token
    return log_probs.sum(1) / length_penalty(is_token.sum(1), alpha)


def length_penalty(length, alpha):
    """Equation (14) of Wu et al., with T2T's length: EOS is counted."""
    return ((5 + length) / 6) ** alpha


def all_outputs(vocab_size, limit):
    """Every sequence of at most `limit` tokens that ends with EOS and holds no PAD, padded."""
    words = range(EOS + 1, vocab_size)
    rows = [
        (*prefix, EOS, *[PAD] * (limit - length - 1))
        for length in range(limit)
        for prefix in itertools.product(words, repeat=length)
    ]
    return np.array(rows, np.int32)
