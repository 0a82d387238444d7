"""Section 4: self-attention over a neighbourhood, against full attention of which only a band is seen."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from keras import ops

from t2t_revival import HParams, Transformer
from t2t_revival.model import LayerConfig
from t2t_revival.model.attention import MASKED, MultiHeadAttention
from t2t_revival.model.extensions import restricted_attention
from t2t_revival.model.extensions.restricted_attention import RestrictedSelfAttention
from tests.support.numpy_transformer import multi_head, neighbourhoods, normal_arrays, self_matrices

pytestmark = pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")  # a first step
normal = normal_arrays(8)


def built(window: int, causal: bool, **sizes: Any) -> RestrictedSelfAttention:
    config = LayerConfig(2, 8, attention_window=window, **sizes)
    layer = RestrictedSelfAttention(config, causal=causal, name="a")
    layer.build()
    return layer


def padding(lengths: list[int], longest: int) -> np.ndarray:
    """Padding mask, bool [batch, longest]."""
    return np.arange(longest) < np.array(lengths)[:, None]


def attend(layer: RestrictedSelfAttention, x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    return ops.convert_to_numpy(layer(x, mask=mask))


@given(
    length=st.integers(1, 40),
    window=st.integers(1, 90),
    masked=st.booleans(),
    least=st.integers(1, 33),
    data=st.data(),
)
def test_equals_full_attention_of_which_a_band_is_seen(
    length: int, window: int, masked: bool, least: int, data: st.DataObject
) -> None:
    """Sentences of any length; positions that see nothing but padding are not compared."""
    layer = built(window, masked, key_channels=6)
    matrices = self_matrices({w.path: np.array(w, "float64") for w in layer.weights}, "a", layer)
    x = normal(2, length, 8)
    lengths = [length, data.draw(st.integers(1, length))]
    with mock.patch.object(restricted_attention, "MIN_BLOCK", least):
        got = attend(layer, x, padding(lengths, length))
    assert np.isfinite(got).all()
    for b in range(2):
        visible = neighbourhoods(length, window, masked) & (np.arange(length) < lengths[b])
        looks = visible.any(1)
        expected = multi_head(x[b], x[b], matrices, 2, visible | ~looks[:, None])
        np.testing.assert_allclose(got[b][looks], expected[looks], atol=5e-6)


@pytest.mark.parametrize(
    ("length", "window", "masked"),
    [(5, 3, False), (70, 1, True), (256, 2, False), (300, 9, True), (401, 64, False), (523, 301, True)],
)
def test_outputs_and_gradients_equal_those_of_a_band_of_biases(
    length: int, window: int, masked: bool
) -> None:
    """With the blocks' own sizes; padded positions too: what is far is hidden more than padding."""
    mask = padding([length, length * 2 // 3], length)
    hidden = np.where(mask, 0, MASKED)[:, None, None].astype("float32")
    band = np.where(neighbourhoods(length, window, masked), 0, -2e9).astype("float32")

    class Banded(MultiHeadAttention):
        def attention_bias(self, x: object, mask: object = None) -> np.ndarray:
            return hidden + band

    layer, full = built(window, masked), Banded(LayerConfig(2, 8), name="a")
    full.build()
    full.set_weights(layer.get_weights())
    x, weights = tf.constant(normal(2, length, 8)), normal(2, length, 8)

    def output_and_gradients(layer: MultiHeadAttention, **masks: object) -> list[np.ndarray]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer(x, **masks)
            value = tf.reduce_sum(output * weights)
        return [output.numpy(), *(g.numpy() for g in tape.gradient(value, [x, *layer.trainable_weights]))]

    got = output_and_gradients(layer, mask=mask)
    expected = output_and_gradients(full)
    assert len(got) == 4
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5 * max(1, np.abs(other).max()))


def test_one_graph_serves_all_lengths() -> None:
    layer = built(5, causal=False)
    with mock.patch.object(restricted_attention, "MIN_BLOCK", 4):
        graph = tf.function(
            lambda x, mask: layer(x, mask=mask),
            input_signature=[tf.TensorSpec([None, None, 8]), tf.TensorSpec([None, None], tf.bool)],
        )
        for length in (1, 3, 4, 7, 8, 9, 23, 24):
            x, mask = normal(2, length, 8), padding([length, (length + 1) // 2], length)
            np.testing.assert_allclose(graph(x, mask), attend(layer, x, mask), atol=2e-6)
        assert graph(np.zeros((0, 9, 8), "float32"), np.zeros((0, 9), bool)).shape == (0, 9, 8)


def elements(layer: RestrictedSelfAttention, length: int) -> list[int]:
    """Number of elements of each tensor in the graph of a layer and its gradient."""

    def loss(x: tf.Tensor) -> tf.Tensor:
        return tf.gradients(tf.reduce_sum(layer(x) ** 2), [x])[0]

    graph = tf.function(loss).get_concrete_function(tf.TensorSpec([1, length, 8])).graph
    tensors = [tensor for operation in graph.get_operations() for tensor in operation.outputs]
    return [tensor.shape.num_elements() or 0 for tensor in tensors]


@pytest.mark.parametrize(("window", "masked"), [(16, False), (128, False), (128, True)])
def test_twice_the_length_takes_twice_the_elements(window: int, masked: bool) -> None:
    """In all tensors together; and none has an element for each pair of positions."""
    layer = built(window, masked)
    short, long = elements(layer, 1024), elements(layer, 2048)
    assert sum(long) < 2.02 * sum(short)
    block = max(window // 2, restricted_attention.MIN_BLOCK)
    heads, reach = 2, window if not masked else window // 2
    assert max(long) <= heads * 2048 * (block + reach)
    assert max(long) >= heads * 2048 * block  # the scores, so that these were counted


def test_weights_have_the_names_of_full_attention(tiny_hparams: HParams) -> None:
    full, restricted = (Transformer(tiny_hparams.replace(attention_window=w), 11) for w in (0, 3))
    assert [(w.path, w.shape) for w in restricted.weights] == [(w.path, w.shape) for w in full.weights]
