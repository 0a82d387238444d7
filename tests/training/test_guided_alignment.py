"""Guided alignment: the loss of the head, and a head that learns."""

import keras
import numpy as np
import pytest

from t2t_revival import HParams
from t2t_revival.training.model import TrainingTransformer
from tests.support.tiny_models import TINY

GUIDED = TINY.replace(guided_alignment_weight=2.0, layer_prepostprocess_dropout=0.0, label_smoothing=0.0)


@pytest.mark.parametrize(("layers", "layer"), [(1, 0), (2, 0), (6, 4)])
def test_the_head_is_of_the_last_layer_but_one(layers, layer):
    assert TINY.replace(num_decoder_layers=layers).guided_head == (layer, 0)


def batch():
    inputs, targets = np.array([[4, 5, 6, 1], [6, 4, 1, 0]]), np.array([[7, 8, 9, 1], [9, 7, 1, 0]])
    shares = np.zeros((2, 4, 4), np.float32)
    shares[0, 0, 0] = shares[0, 1, 1] = shares[0, 2, 2] = shares[1, 0, 0] = shares[1, 1, 1] = 1
    weights = (targets != 0) / np.float32(7)
    return {"inputs": inputs, "targets": targets, "alignments": shares}, targets, weights


def loss_of(hparams: HParams, parts: int) -> tuple[float, TrainingTransformer]:
    keras.utils.set_random_seed(1)
    model = TrainingTransformer(hparams, 10, num_parallel_batches=parts)
    x, y, weights = batch()
    return float(model.token_losses(x, y, model(x, training=True), weights)[0]), model


@pytest.mark.parametrize("parts", [1, 2])
def test_the_loss_has_the_heads_part(parts):
    plain, model = loss_of(GUIDED.replace(guided_alignment_weight=0.0), parts)
    loss, _ = loss_of(GUIDED, parts)
    x, _, weights = batch()
    attention = np.asarray(model.attention_weights(x).encoder_decoder)[:, 0, 0]  # [batch, target, source]
    expected = 0.0
    for row, target in zip(*np.nonzero(x["alignments"].sum(-1)), strict=True):
        source = x["alignments"][row, target].argmax()
        expected -= weights[row, target] * np.log(attention[row, target + 1, source])
    assert loss == pytest.approx(plain + 2.0 * expected, rel=1e-5)
