"""Parts that hparams put in the place of the paper's: values beside NumPy, and position by position."""

from pkgutil import resolve_name

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import ops

from t2t_revival import Transformer
from t2t_revival.hparams.variants import POSITIONS, VARIANTS, Variant
from t2t_revival.model.attention import scaled_dot_product_attention
from t2t_revival.model.embedding import ENCODINGS
from t2t_revival.model.extensions.positions import RelativeAttention, rotate
from t2t_revival.model.feed_forward import ACTIVATIONS, FeedForward, GatedFeedForward
from t2t_revival.model.layer import LayerConfig
from t2t_revival.model.norms import RMSNorm
from tests.support.numpy_transformer import normal_arrays
from tests.support.tiny_models import TINY, VARIATIONS

RNG, normal = np.random.default_rng(5), normal_arrays(5)
BASE = {"gelu": [-0.15865525, 0.84134475], "relu": [0, 1], "swish": [-0.26894142, 0.73105858]}  # of -1 and 1


@pytest.mark.parametrize("row", [row for rows in VARIANTS.values() for row in rows.values()])
def test_each_value_of_an_hparam_has_its_class(row: Variant) -> None:
    assert not row.made_by or isinstance(resolve_name(f"t2t_revival.model.{row.made_by}"), type)
    assert not row.activation or row.activation in ACTIVATIONS


def test_positions_are_added_or_told_by_attention() -> None:
    assert {*ENCODINGS, "emb"} == {name for name, row in POSITIONS.items() if not row.made_by}


def turned(vector: np.ndarray, position: int) -> np.ndarray:
    """Su et al., equation (15): the block-diagonal matrix of rotations, times a vector of one head."""
    size = len(vector)
    matrix = np.zeros((size, size))
    for i in range(size // 2):
        angle = position * 10000 ** (-2 * i / size)
        block = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return matrix @ vector


def test_rotations_equal_numpy() -> None:
    x, positions = normal(2, 3, 4, 6), np.array([0, 1, 7, 200])
    expected = np.empty_like(x)
    for index in np.ndindex(2, 3, 4):
        expected[index] = turned(x[index], positions[index[2]])
    np.testing.assert_allclose(ops.convert_to_numpy(rotate(x, positions)), expected, atol=1e-5)


@given(shift=st.integers(0, 500), length=st.integers(1, 9))
def test_rotated_scores_depend_on_distances_alone(shift: int, length: int) -> None:
    query, key, value = (normal(1, 2, length, 8) for _ in range(3))
    positions = np.arange(length)
    there, here = (
        scaled_dot_product_attention(rotate(query, at), rotate(key, at), value)[0]
        for at in (positions + shift, positions)
    )
    np.testing.assert_allclose(ops.convert_to_numpy(there), ops.convert_to_numpy(here), atol=2e-4)


@pytest.mark.parametrize("causal", [False, True])
def test_relative_attention_equals_numpy(causal: bool) -> None:
    """Shaw et al., equations (2) to (4), pair by pair, for distances up to 2."""
    config = LayerConfig(num_heads=2, hidden_size=8, pos="relative", max_relative_position=2)
    layer = RelativeAttention(config, causal=causal)
    layer.build()
    x = normal(1, 6, 8)
    keys, values = (np.array(table) for table in (layer.relative_keys, layer.relative_values))
    query, key, value = (
        np.array(x[0] @ np.array(layer.query_key_value_kernel)).reshape(6, 3, 2, 4).transpose(1, 2, 0, 3)
    )
    output = np.zeros((6, 2, 4))
    for head, i in np.ndindex(2, 6):
        seen = range(i + 1 if causal else 6)
        at = [np.clip(j - i, -2, 2) + 2 for j in seen]
        scores = np.array(
            [query[head, i] @ (key[head, j] + keys[a]) / 2 for j, a in zip(seen, at, strict=True)]
        )
        weights = np.exp(scores) / np.exp(scores).sum()
        output[i, head] = sum(
            w * (value[head, j] + values[a]) for w, j, a in zip(weights, seen, at, strict=True)
        )
    expected = output.reshape(6, 8) @ np.array(layer.output_kernel)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x))[0], expected, atol=1e-5)


@pytest.mark.parametrize("name", BASE)
def test_activations(name: str) -> None:
    np.testing.assert_allclose(ACTIVATIONS[name](np.array([-1.0, 1.0], "float32")), BASE[name], atol=1e-6)
    layer = FeedForward(LayerConfig(hidden_size=1, filter_size=2, ffn_activation=name))
    layer.build()
    layer.kernel_1.assign([[-1.0, 1.0]])
    layer.kernel_2.assign([[2.0], [5.0]])
    found = ops.convert_to_numpy(layer(np.ones((1, 1), "float32")))
    np.testing.assert_allclose(found, [[2 * BASE[name][0] + 5 * BASE[name][1]]], atol=1e-6)


@pytest.mark.parametrize(("name", "activation"), [("geglu", "gelu"), ("swiglu", "swish")])
def test_gated_feed_forward(name: str, activation: str) -> None:
    """Shazeer, equation (6): the first half of the matrix has the activation."""
    layer = GatedFeedForward(LayerConfig(hidden_size=1, filter_size=2, ffn_activation=name))
    layer.build()
    layer.kernel_1.assign([[-1.0, 1.0, 3.0, 0.5]])
    layer.kernel_2.assign([[2.0], [5.0]])
    found = ops.convert_to_numpy(layer(np.ones((2, 1, 1), "float32")))
    of_minus_one, of_one = BASE[activation]
    np.testing.assert_allclose(found, np.full((2, 1, 1), 6 * of_minus_one + 2.5 * of_one), atol=1e-5)


def test_rms_norm() -> None:
    layer = RMSNorm(4, epsilon=0.5)
    layer.build()
    layer.gamma.assign([1.0, 2.0, 3.0, 4.0])
    x = normal(2, 3, 4) + 1
    expected = x / np.sqrt((x.astype("float64") ** 2).mean(-1, keepdims=True) + 0.5) * [1, 2, 3, 4]
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, atol=1e-5)


@pytest.mark.parametrize("positions", [0, 7])
@pytest.mark.parametrize("name", VARIATIONS)
def test_position_by_position_equals_all_at_once(name: str, positions: int) -> None:
    """With a cache that grows, and with one for 7 positions; each source has three hypotheses."""
    keras.utils.set_random_seed(1)
    model = Transformer(TINY.replace(**VARIATIONS[name]), 11)
    for weight in model.trainable_weights:
        weight.assign(weight + 0.3 * normal(*weight.shape))
    source = np.array([[3, 4, 5, 6, 1], [7, 1, 0, 0, 0]], "int32")
    targets = RNG.integers(2, 11, (2, 3, 6)).astype("int32")
    expected = model({"inputs": source.repeat(3, axis=0), "targets": targets.reshape(6, 6)})
    state, last = model.start_decoding(source, 3, positions), np.zeros((2, 3), "int32")
    for position in range(6):
        logits, state = model.decode_step(last, position, state)
        found = ops.convert_to_numpy(logits).reshape(6, 11)
        np.testing.assert_allclose(found, ops.convert_to_numpy(expected)[:, position], atol=2e-5)
        last = targets[:, :, position]
