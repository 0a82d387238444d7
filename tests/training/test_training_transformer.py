"""`TrainingTransformer`: the logits, loss, gradients and weights of `Transformer`."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import HParams, TokenCrossEntropy, Transformer
from t2t_revival.training.model import TrainingTransformer

VOCAB = 11
IDS = {
    "inputs": np.array([[3, 4, 5, 1], [6, 1, 0, 0]], "int32"),
    "targets": np.array([[7, 8, 1], [9, 1, 0]], "int32"),
}
WEIGHTS = ((IDS["targets"] != 0) / np.float32(5)).astype("float32")


def siblings(hparams: HParams, *num_parallel_batches: int) -> list[Any]:
    """A plain model and a fused one for each number of parts, of the same weights and the same loss."""
    dropout = {"layer_prepostprocess_dropout": 0.0, "attention_dropout": 0.0, "relu_dropout": 0.0}
    hparams = hparams.replace(label_smoothing=0.1, **dropout)
    keras.utils.set_random_seed(1)
    plain = Transformer(hparams, VOCAB)
    models = [plain, *(TrainingTransformer(hparams, VOCAB, parts) for parts in num_parallel_batches)]
    for model in models:
        model.set_weights(plain.get_weights())
    return models


def loss_and_gradients(model: Transformer) -> tuple[Any, list[Any]]:
    with tf.GradientTape() as tape:
        output = model(IDS, training=True)
        if isinstance(model, TrainingTransformer):
            loss, _ = model.token_losses(IDS, IDS["targets"], output, WEIGHTS)
        else:
            loss = TokenCrossEntropy(0.1)(IDS["targets"], output, WEIGHTS)
    return loss, tape.gradient(loss, [weight.value for weight in model.trainable_variables])


@pytest.mark.parametrize("softmax_bias", [False, True])
@pytest.mark.parametrize(("shared", "num_parallel_batches"), [(True, 1), (False, 1), (True, 2), (True, 3)])
def test_loss_and_gradients_are_those_of_the_logits(
    tiny_hparams: HParams, shared: bool, num_parallel_batches: int, softmax_bias: bool
) -> None:
    """Batches with fewer sentences than parts are included."""
    hparams = tiny_hparams.replace(shared_embedding_and_softmax_weights=shared, softmax_bias=softmax_bias)
    plain, fused = siblings(hparams, num_parallel_batches)
    for model in (plain, fused) if softmax_bias else ():
        model.softmax_embedding.softmax_bias.assign(np.linspace(-1, 1, VOCAB))
    assert [w.path for w in fused.weights] == [w.path for w in plain.weights]
    (loss, gradients), (fused_loss, fused_gradients) = loss_and_gradients(plain), loss_and_gradients(fused)
    assert float(fused_loss) == pytest.approx(float(loss), rel=1e-6)
    for got, expected in zip(fused_gradients, gradients, strict=True):
        np.testing.assert_allclose(*map(tf.convert_to_tensor, (got, expected)), atol=2e-6)


def test_logits_where_it_does_not_train(tiny_hparams: HParams) -> None:
    plain, fused = siblings(tiny_hparams, 2)
    assert (fused(IDS).numpy() == plain(IDS).numpy()).all()
    parts = fused(IDS, training=True)
    assert [part.shape for part in parts] == [(1, 3, tiny_hparams.hidden_size)] * 2
