"""Section 3.3, equation (2)."""

import keras
import numpy as np
from keras import ops

from t2t_revival.model.feed_forward import FeedForward
from tests.support.numpy_transformer import feed_forward

RNG = np.random.default_rng(4)


def built() -> FeedForward:
    layer = FeedForward(hidden_size=6, filter_size=10)
    layer.build()
    for weight in layer.trainable_weights:
        weight.assign(RNG.standard_normal(weight.shape))
    return layer


def test_equation_2() -> None:
    layer = built()
    x = RNG.standard_normal((2, 3, 6)).astype("float32")
    w1, b1, w2, b2 = (
        np.array(w, "float64") for w in (layer.kernel_1, layer.bias_1, layer.kernel_2, layer.bias_2)
    )
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(x)), feed_forward(x.astype("float64"), w1, b1, w2, b2), atol=1e-5
    )


def test_relu_dropout_sits_between_the_two_products() -> None:
    """With identity matrices what comes out is what dropout left."""
    keras.utils.set_random_seed(2)
    layer = FeedForward(hidden_size=8, filter_size=8, dropout=0.5)
    layer.build()
    layer.kernel_1.assign(np.eye(8))
    layer.kernel_2.assign(np.eye(8))
    x = np.ones((4, 50, 8), "float32")
    out = ops.convert_to_numpy(layer(x, training=True))
    assert set(np.unique(out)) == {0.0, 2.0}
    assert (ops.convert_to_numpy(layer(x, training=False)) == x).all()
