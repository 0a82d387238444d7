"""Other forms of weights in a whole model."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_revival import HParams, Transformer
from t2t_revival.model.products import Matrix, matmul, replace_matrices, take, transpose

INPUTS = {"inputs": np.array([[5, 6, 1]]), "targets": np.array([[7, 8, 9, 1]])}


class Doubled(Matrix):
    """A matrix times 2."""

    def __init__(self, values):
        self.values = values

    def multiply(self, rows):
        return ops.matmul(rows, self.values) * 2

    def take(self, ids):
        return ops.take(self.values, ids, axis=0) * 2

    def transpose(self):
        return Doubled(ops.transpose(self.values))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shared_embedding_and_softmax_weights": False},
        {"pos": "emb"},
        {"deterministic_attention": True},
        {"decoder_self_attention": "ssru"},
    ],
)
def test_every_matrix_can_have_another_form(settings):
    """The model computes as if its matrices were the others."""
    keras.utils.set_random_seed(3)
    hparams = HParams(num_hidden_layers=2, hidden_size=8, filter_size=16, num_heads=2, **settings)
    model = Transformer(hparams, 20)
    matrices = [weight for weight in model.weights if weight.trainable and len(weight.shape) == 2]
    with replace_matrices([(weight, Doubled(weight.value)) for weight in matrices]):
        found = ops.convert_to_numpy(model(INPUTS))
    before = ops.convert_to_numpy(model(INPUTS))
    for weight in matrices:
        weight.assign(weight * 2)
    expected = ops.convert_to_numpy(model(INPUTS))
    assert np.abs(expected - before).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_other_variables_stay_as_they_are():
    replaced, other = (keras.Variable(np.eye(2, dtype="float32")) for _ in range(2))
    with replace_matrices([(replaced, Doubled(replaced.value))]):
        assert ops.convert_to_numpy(matmul(np.ones((1, 2), "float32"), other)).tolist() == [[1, 1]]
        assert ops.convert_to_numpy(take(other, [1])).tolist() == [[0, 1]]
        assert ops.convert_to_numpy(transpose(other, "float32")).tolist() == [[1, 0], [0, 1]]
        assert ops.convert_to_numpy(matmul(np.ones((1, 2), "float32"), replaced)).tolist() == [[2, 2]]
    assert ops.convert_to_numpy(take(replaced, [1])).tolist() == [[0, 1]]
