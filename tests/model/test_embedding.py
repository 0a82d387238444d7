"""Sections 3.4 and 3.5."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import ops

from t2t_revival.model.embedding import PositionalEncoding, TokenEmbedding, sinusoids
from tests.support.numpy_transformer import sinusoids as numpy_sinusoids

RNG = np.random.default_rng(5)


def test_embedding_is_scaled_by_the_root_of_the_width() -> None:
    layer = TokenEmbedding(7, 16)
    layer.build()
    table = np.array(layer.embeddings, "float64")
    ids = np.array([[3, 1], [6, 3]])
    np.testing.assert_allclose(ops.convert_to_numpy(layer(ids)), table[ids] * 4, rtol=1e-6)


def test_padding_is_the_zero_vector() -> None:
    layer = TokenEmbedding(7, 16)
    layer.build()
    vectors = ops.convert_to_numpy(layer(np.array([[3, 0]])))
    assert vectors[0, 0].all()
    assert not vectors[0, 1].any()


def test_the_same_matrix_makes_the_logits() -> None:
    layer = TokenEmbedding(7, 16)
    layer.build()
    x = RNG.standard_normal((2, 3, 16)).astype("float32")
    table = np.array(layer.embeddings, "float64")
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x, reverse=True)), x @ table.T, atol=1e-5)
    assert len(layer.weights) == 1


def test_embeddings_start_with_a_deviation_of_one_over_the_root_of_the_width() -> None:
    layer = TokenEmbedding(500, 64)
    layer.build()
    assert np.array(layer.embeddings).std() == pytest.approx(64**-0.5, rel=0.03)


@given(length=st.integers(1, 60), half=st.integers(1, 40))
def test_sinusoids_as_printed(length: int, half: int) -> None:
    got = ops.convert_to_numpy(sinusoids(np.arange(length, dtype="float32"), 2 * half))
    np.testing.assert_allclose(got, numpy_sinusoids(length, 2 * half), atol=1e-5)


def test_sinusoids_of_a_few_positions_by_hand() -> None:
    """PE(1, 0) = sin 1, PE(1, 1) = cos 1, and with d_model = 4, PE(1, 2) = sin(1 / 100)."""
    row = ops.convert_to_numpy(sinusoids(np.array([0.0, 1.0], "float32"), 4))
    np.testing.assert_allclose(row[0], [0, 1, 0, 1], atol=1e-7)
    np.testing.assert_allclose(row[1], [0.841471, 0.540302, 0.0099998, 0.99995], atol=1e-6)


def test_timing_signal_is_that_of_tensor2tensor(reference_dir) -> None:
    known = np.load(reference_dir / "timing_signal.npz")
    positions = known["positions"].astype("float32")
    got = ops.convert_to_numpy(sinusoids(positions, 512, as_t2t=True))
    np.testing.assert_allclose(got, known["timing"], atol=2e-5)
    later = ops.convert_to_numpy(sinusoids(np.array([3.0, 4.0], "float32"), 512, as_t2t=True))
    np.testing.assert_allclose(later, known["start3"], atol=2e-6)


@pytest.mark.parametrize("pos", ["sinusoid", "timing"])
def test_positions_are_counted_from_0_or_given(pos: str) -> None:
    layer = PositionalEncoding(8, pos)
    layer.build()
    assert layer.weights == []
    x = RNG.standard_normal((2, 5, 8)).astype("float32")
    signal = ops.convert_to_numpy(sinusoids(np.arange(9, dtype="float32"), 8, as_t2t=pos == "timing"))
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), x + signal[:5], atol=1e-6)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x, np.arange(4, 9))), x + signal[4:], atol=1e-6)


def test_learned_positions() -> None:
    layer = PositionalEncoding(8, "emb", max_length=6)
    layer.build()
    table = np.array(layer.embeddings)
    assert table.shape == (6, 8)
    x = RNG.standard_normal((1, 8, 8)).astype("float32")
    expected = x + table[[0, 1, 2, 3, 4, 5, 5, 5]]
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, atol=1e-6)
