"""A vocabulary each for source and target; test_transformer.py has such models' forward pass and steps."""

import keras
import numpy as np
from keras import ops

from t2t_revival import Transformer
from t2t_revival.training.compile import build_model, compile_model
from tests.support.tiny_models import TINY

SOURCE_SIZE, TARGET_SIZE = 11, 7


def make(tied: bool, target_size: int = TARGET_SIZE) -> Transformer:
    keras.utils.set_random_seed(4)
    hparams = TINY.replace(shared_embedding_and_softmax_weights=tied)
    return Transformer(hparams, SOURCE_SIZE, target_vocab_size=target_size)


def test_two_vocabularies_of_equal_size_are_two() -> None:
    model = make(True, SOURCE_SIZE)
    assert model.source_embedding is not model.target_embedding
    again = Transformer.from_config(model.get_config())
    assert again.count_params() == model.count_params()


def test_the_loss_is_over_the_targets_vocabulary() -> None:
    """Trains one step on a target id that the source's vocabulary has not, and the other way round."""
    hparams = TINY.replace(layer_prepostprocess_dropout=0.0, label_smoothing=0.0)
    model = compile_model(build_model(hparams, 4, target_vocab_size=9), hparams)
    source, targets = np.array([[3, 1]], "int32"), np.array([[8, 1]], "int32")
    inputs = {"inputs": source, "targets": targets}
    logits = ops.convert_to_numpy(model(inputs)).astype("float64")[0]
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    loss = model.train_on_batch(inputs, targets, np.ones((1, 2), "float32"))
    np.testing.assert_allclose(np.ravel(loss)[0], -(log_probs[0, 8] + log_probs[1, 1]), rtol=1e-4)
