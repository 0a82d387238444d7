"""A vocabulary each for source and target; test_transformer.py has such models' forward pass and steps."""

import numpy as np
from keras import ops

from t2t_revival import Transformer
from t2t_revival.training.model import build_model
from tests.support.tiny_models import TINY


def test_two_vocabularies_of_equal_size_are_two() -> None:
    model = Transformer(TINY, 11, target_vocab_size=11)
    assert model.source_embedding is not model.target_embedding
    again = Transformer.from_config(model.get_config())
    assert again.count_params() == model.count_params()


def test_the_loss_is_over_the_targets_vocabulary() -> None:
    """A target id that the source's vocabulary has not, and the other way round."""
    hparams = TINY.replace(layer_prepostprocess_dropout=0.0, label_smoothing=0.0)
    model = build_model(hparams, 4, target_vocab_size=9)
    source, targets = np.array([[3, 1]], "int32"), np.array([[8, 1]], "int32")
    inputs = {"inputs": source, "targets": targets}
    logits = ops.convert_to_numpy(model(inputs)).astype("float64")[0]
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    ones = np.ones((1, 2), "float32")
    loss, _ = model.token_losses(inputs, targets, model(inputs, training=True), ones)
    np.testing.assert_allclose(float(loss), -(log_probs[0, 8] + log_probs[1, 1]), rtol=1e-4)
