"""Section 3.1: layer normalisation and its gradient, which is written out."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from t2t_revival.model.norms import LayerNorm
from tests.support.numpy_transformer import layer_norm

RNG = np.random.default_rng(6)


def built(channels: int = 8, **arguments: float) -> LayerNorm:
    layer = LayerNorm(channels, **arguments)
    layer.build()
    layer.gamma.assign(RNG.standard_normal(channels))
    layer.beta.assign(RNG.standard_normal(channels))
    return layer


@pytest.mark.parametrize("epsilon", [1e-6, 0.5])
def test_value(epsilon: float) -> None:
    layer = built(epsilon=epsilon)
    x = RNG.standard_normal((2, 3, 8)).astype("float32") * 3 + 5
    expected = layer_norm(x.astype("float64"), np.array(layer.gamma), np.array(layer.beta), epsilon)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, atol=2e-5)


def test_equal_channels_give_the_bias_and_no_nan() -> None:
    layer = built()
    out = ops.convert_to_numpy(layer(np.full((1, 1, 8), 7.0, "float32")))
    np.testing.assert_allclose(out[0, 0], np.array(layer.beta), atol=1e-6)


def test_gradients_are_those_of_the_plain_formula() -> None:
    layer = built()
    x = tf.constant(RNG.standard_normal((2, 3, 8)) * 2, tf.float32)
    upstream = tf.constant(RNG.standard_normal((2, 3, 8)), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tf.reduce_sum(layer(x) * upstream)
    got = tape.gradient(value, [x, layer.gamma.value, layer.beta.value])

    x64, up64 = tf.cast(x, tf.float64), tf.cast(upstream, tf.float64)
    gamma, beta = (tf.constant(np.array(w), tf.float64) for w in (layer.gamma, layer.beta))
    with tf.GradientTape() as tape:
        tape.watch([x64, gamma, beta])
        mean = tf.reduce_mean(x64, -1, keepdims=True)
        variance = tf.reduce_mean((x64 - mean) ** 2, -1, keepdims=True)
        value = tf.reduce_sum(((x64 - mean) / tf.sqrt(variance + 1e-6) * gamma + beta) * up64)
    for a, b in zip(got, tape.gradient(value, [x64, gamma, beta]), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


def test_statistics_are_float32_under_mixed_precision() -> None:
    """1000 +- 1 has no variance left in bfloat16's 8 bits, were it not computed in float32."""
    layer = LayerNorm(64, dtype="mixed_bfloat16")
    layer.build()
    x = tf.cast(RNG.standard_normal((4, 64)) * 8 + 1000, tf.bfloat16)
    out = layer(x)
    assert keras.backend.standardize_dtype(out.dtype) == "bfloat16"
    assert layer.gamma.dtype == "float32"
    expected = layer_norm(tf.cast(x, tf.float64).numpy(), np.ones(64), np.zeros(64))
    np.testing.assert_allclose(tf.cast(out, tf.float64).numpy(), expected, atol=0.02)
