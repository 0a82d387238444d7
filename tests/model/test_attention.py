"""Section 3.2: equation (1), heads, masks, and the steps of decoding."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_revival.model.attention import (
    MultiHeadAttention,
    causal_bias,
    scaled_dot_product_attention,
)
from tests.support.numpy_transformer import attention, cross_matrices, multi_head, self_matrices

pytestmark = pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")  # a first step
RNG = np.random.default_rng(3)


def built(
    key: int | None = None, value: int | None = None, heads: int = 2, hidden: int = 8, **arguments: object
) -> tuple[MultiHeadAttention, dict[str, np.ndarray]]:
    layer = MultiHeadAttention(heads, hidden, key, value, **arguments, name="a")
    layer.build()
    return layer, {w.path: np.array(w, "float64") for w in layer.weights}


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@pytest.mark.parametrize("bias", [False, True])
def test_equation_1(bias: bool) -> None:
    query, key, value = normal(2, 3, 4, 6), normal(2, 3, 5, 6), normal(2, 3, 5, 7)
    visible = RNG.random((2, 1, 4, 5)) < 0.6 if bias else np.ones((2, 1, 4, 5), bool)
    visible[..., 0] = True
    hidden = (1 - visible.astype("float32")) * -1e9 if bias else None
    got, weights = map(ops.convert_to_numpy, scaled_dot_product_attention(query, key, value, hidden))
    np.testing.assert_allclose(got, weights @ value, atol=2e-6)
    for b, h in np.ndindex(2, 3):
        expected = attention(query[b, h], key[b, h], value[b, h], visible[b, 0])
        np.testing.assert_allclose(got[b, h], expected, atol=2e-6)


def test_a_bias_is_added_to_the_scaled_scores() -> None:
    query, key, value = normal(1, 1, 2, 4), normal(1, 1, 3, 4), np.eye(3, dtype="float32")[None, None]
    bias = normal(1, 1, 2, 3)
    scores = query[0, 0].astype("float64") @ key[0, 0].T / 2 + bias[0, 0]
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    for got in map(ops.convert_to_numpy, scaled_dot_product_attention(query, key, value, bias)):
        np.testing.assert_allclose(got[0, 0], weights, atol=1e-6)


def test_scores_are_returned_before_dropout() -> None:
    layer, _ = built(dropout=0.5)
    x = normal(2, 5, 8)
    output, scores = layer(x, return_attention_scores=True)
    _, in_training = layer(x, training=True, return_attention_scores=True)
    assert tuple(scores.shape) == (2, 2, 5, 5)
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (scores, in_training)))
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (output, layer(x))))


def test_a_mask_adds_to_causality() -> None:
    layer, _ = built(causal=True)
    mask = np.array([[True, False, True, True], [True, True, True, False]])
    _, scores = layer(normal(2, 4, 8), mask=mask, return_attention_scores=True)
    expected = np.tril(np.ones((4, 4), bool)) & mask[:, None]
    np.testing.assert_array_equal(ops.convert_to_numpy(scores)[:, 0] > 0, expected)


CHANNELS = [(None, None, 2), (4, 4, 2), (4, 6, 2), (16, None, 4), (None, None, 1)]


@pytest.mark.parametrize(("key", "value", "heads"), CHANNELS)
def test_self_attention(key: int | None, value: int | None, heads: int) -> None:
    layer, weights = built(key, value, heads, causal=True)
    x = normal(2, 5, 8)
    got = ops.convert_to_numpy(layer(x))
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(x, bias=causal_bias(5))), got)
    for b in range(2):
        visible = np.tril(np.ones((5, 5), bool))
        expected = multi_head(x[b], x[b], self_matrices(weights, "a", layer), heads, visible)
        np.testing.assert_allclose(got[b], expected, atol=2e-6)


@pytest.mark.parametrize(("key", "value", "heads"), CHANNELS)
def test_attention_over_the_encoder(key: int | None, value: int | None, heads: int) -> None:
    layer, weights = built(key, value, heads, cross_attention=True)
    x, encoded = normal(2, 3, 8), normal(2, 6, 8)
    source = np.array([[4, 3, 1, 0, 0, 0], [4, 3, 2, 2, 2, 1]])
    got = ops.convert_to_numpy(layer(x, encoded, mask=source != 0))
    for b in range(2):
        visible = np.broadcast_to(source[b] != 0, (3, 6))
        expected = multi_head(x[b], encoded[b], cross_matrices(weights, "a", layer), heads, visible)
        np.testing.assert_allclose(got[b], expected, atol=2e-6)


def test_fused_matrices_are_initialised_as_if_each_stood_alone() -> None:
    """Glorot's bound depends on the shape: 64 x 64 each, not 64 x 192 together."""
    layer, weights = built(heads=4, hidden=64)
    bound = (6 / (64 + 64)) ** 0.5
    largest = np.abs(weights["a/query_key_value"]).max()
    assert 0.98 * bound < largest <= bound
    assert len({w.tobytes() for w in np.split(weights["a/query_key_value"], 3, axis=1)}) == 3
    assert layer.count_params() == 4 * 64 * 64


def test_attention_dropout_acts_on_the_weights_in_training_only() -> None:
    keras.utils.set_random_seed(1)
    query, key = np.zeros((1, 1, 200, 4), "float32"), np.zeros((1, 1, 50, 4), "float32")
    value = np.eye(50, dtype="float32")[None, None]
    layer, _ = built(dropout=0.25)
    dropped, _ = scaled_dot_product_attention(query, key, value, dropout=layer.dropout, training=True)
    weights = ops.convert_to_numpy(dropped)
    assert set(np.unique(weights.round(6))) == {0.0, np.float32(1 / 50 / 0.75).round(6)}
    assert abs((weights == 0).mean() - 0.25) < 0.02
    still = ops.convert_to_numpy(scaled_dot_product_attention(query, key, value, dropout=layer.dropout)[0])
    np.testing.assert_allclose(still, 1 / 50, rtol=1e-6)
