"""Section 3.2: equation (1), heads, masks, and the steps of decoding."""

import keras
import numpy as np
import pytest
from keras import ops
from numpy_transformer import attention, cross_matrices, multi_head, self_matrices

from t2t_revival.hparams import HParams
from t2t_revival.model.attention import (
    MultiHeadAttention,
    causal_bias,
    padding_bias,
    recorded_weights,
    scaled_dot_product_attention,
)

pytestmark = pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")  # a first step
RNG = np.random.default_rng(3)


def sizes(key: int, value: int, heads: int = 2) -> HParams:
    return HParams(hidden_size=8, num_heads=heads, attention_key_channels=key, attention_value_channels=value)


def built(hparams: HParams, over_encoder: bool = False) -> tuple[MultiHeadAttention, dict[str, np.ndarray]]:
    layer = MultiHeadAttention(hparams, over_encoder=over_encoder, name="a")
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
    got = ops.convert_to_numpy(scaled_dot_product_attention(query, key, value, hidden))
    for b, h in np.ndindex(2, 3):
        expected = attention(query[b, h], key[b, h], value[b, h], visible[b, 0])
        np.testing.assert_allclose(got[b, h], expected, atol=2e-6)


def test_a_bias_is_added_to_the_scaled_scores() -> None:
    query, key, value = normal(1, 1, 2, 4), normal(1, 1, 3, 4), np.eye(3, dtype="float32")[None, None]
    bias = normal(1, 1, 2, 3)
    scores = query[0, 0].astype("float64") @ key[0, 0].T / 2 + bias[0, 0]
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    got = ops.convert_to_numpy(scaled_dot_product_attention(query, key, value, bias))
    np.testing.assert_allclose(got[0, 0], weights, atol=1e-6)


def test_weights_are_recorded_inside_of_the_context_only_and_before_dropout() -> None:
    layer, _ = built(HParams(hidden_size=8, num_heads=2, attention_dropout=0.5))
    x = normal(2, 5, 8)
    layer(x)
    with recorded_weights() as outer:
        layer(x, training=True)
        with recorded_weights() as inner:
            layer(x[:, :3])
        layer(x)
    layer(x)
    assert [tuple(weights.shape) for weights in outer] == [(2, 2, 5, 5)] * 2
    assert [tuple(weights.shape) for weights in inner] == [(2, 2, 3, 3)]
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, outer))


def test_padding_bias_hides_id_0() -> None:
    bias = ops.convert_to_numpy(padding_bias(np.array([[5, 1, 0, 0]])))
    assert bias.shape == (1, 1, 1, 4)
    assert (bias[0, 0, 0, :2] == 0).all()
    assert (bias[0, 0, 0, 2:] == -3e4).all()


def test_causal_bias_shows_each_position_itself_and_what_is_before() -> None:
    bias = ops.convert_to_numpy(causal_bias(3))
    assert ((bias[0, 0] == 0) == np.tril(np.ones((3, 3), bool))).all()


CHANNELS = [(0, 0, 2), (4, 4, 2), (4, 6, 2), (16, 0, 4), (0, 0, 1)]


@pytest.mark.parametrize(("key", "value", "heads"), CHANNELS)
def test_self_attention(key: int, value: int, heads: int) -> None:
    h = sizes(key, value, heads)
    layer, weights = built(h)
    x = normal(2, 5, 8)
    got = ops.convert_to_numpy(layer(x, bias=causal_bias(5)))
    for b in range(2):
        visible = np.tril(np.ones((5, 5), bool))
        expected = multi_head(x[b], x[b], self_matrices(weights, "a", h), heads, visible)
        np.testing.assert_allclose(got[b], expected, atol=2e-6)


@pytest.mark.parametrize(("key", "value", "heads"), CHANNELS)
def test_attention_over_the_encoder(key: int, value: int, heads: int) -> None:
    h = sizes(key, value, heads)
    layer, weights = built(h, over_encoder=True)
    x, encoded = normal(2, 3, 8), normal(2, 6, 8)
    source = np.array([[4, 3, 1, 0, 0, 0], [4, 3, 2, 2, 2, 1]])
    got = ops.convert_to_numpy(layer(x, encoded, bias=padding_bias(source)))
    for b in range(2):
        visible = np.broadcast_to(source[b] != 0, (3, 6))
        expected = multi_head(x[b], encoded[b], cross_matrices(weights, "a", h), heads, visible)
        np.testing.assert_allclose(got[b], expected, atol=2e-6)


@pytest.mark.parametrize(("key", "value"), [(0, 0), (4, 12)])
def test_steps_with_a_cache_equal_the_whole_sentence(key: int, value: int) -> None:
    h = sizes(key, value)
    layer, _ = built(h)
    x = normal(3, 5, 8)
    whole = ops.convert_to_numpy(layer(x, bias=causal_bias(5)))
    cache = (
        np.zeros((3, 2, 0, h.key_channels // 2), "float32"),
        np.zeros((3, 2, 0, h.value_channels // 2), "float32"),
    )
    for t in range(5):
        bias = np.zeros((3, 1, 1, t + 1), "float32")
        output, cache = layer.step(ops.convert_to_tensor(x[:, t]), 1, cache, bias)
        np.testing.assert_allclose(ops.convert_to_numpy(output), whole[:, t], atol=2e-6)
    assert tuple(cache[0].shape) == (3, 2, 5, h.key_channels // 2)
    assert tuple(cache[1].shape) == (3, 2, 5, h.value_channels // 2)


def test_a_step_over_the_encoder_serves_all_beams() -> None:
    layer, _ = built(sizes(4, 12), over_encoder=True)
    x, encoded = normal(2, 3, 8), normal(2, 4, 8)
    bias = padding_bias(np.array([[4, 1, 0, 0], [4, 3, 2, 1]]))
    cache = layer.key_value_heads(ops.convert_to_tensor(encoded))
    got = layer.step_over_encoder(ops.reshape(x, (6, 8)), 3, cache, bias)
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.reshape(got, (2, 3, 8))),
        ops.convert_to_numpy(layer(x, encoded, bias)),
        atol=2e-6,
    )


def test_fused_matrices_are_initialised_as_if_each_stood_alone() -> None:
    """Glorot's bound depends on the shape: 64 x 64 each, not 64 x 192 together."""
    layer, weights = built(HParams(hidden_size=64, num_heads=4))
    bound = (6 / (64 + 64)) ** 0.5
    largest = np.abs(weights["a/query_key_value"]).max()
    assert 0.98 * bound < largest <= bound
    assert len({w.tobytes() for w in np.split(weights["a/query_key_value"], 3, axis=1)}) == 3
    assert layer.count_params() == 4 * 64 * 64


def test_attention_dropout_acts_on_the_weights_in_training_only() -> None:
    keras.utils.set_random_seed(1)
    query, key = np.zeros((1, 1, 200, 4), "float32"), np.zeros((1, 1, 50, 4), "float32")
    value = np.eye(50, dtype="float32")[None, None]
    layer = MultiHeadAttention(HParams(hidden_size=8, num_heads=2, attention_dropout=0.25))
    layer.build()
    weights = ops.convert_to_numpy(
        scaled_dot_product_attention(query, key, value, dropout=layer.dropout, training=True)
    )
    assert set(np.unique(weights.round(6))) == {0.0, np.float32(1 / 50 / 0.75).round(6)}
    assert abs((weights == 0).mean() - 0.25) < 0.02
    still = ops.convert_to_numpy(scaled_dot_product_attention(query, key, value, dropout=layer.dropout))
    np.testing.assert_allclose(still, 1 / 50, rtol=1e-6)
