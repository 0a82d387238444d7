"""Sections 3.4 and 3.5."""

import numpy as np
import pytest
from keras import ops

from t2t_revival.model import embedding
from t2t_revival.model.embedding import PositionalEncoding, TokenEmbedding, sinusoids

RNG = np.random.default_rng(5)


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


def test_learned_positions() -> None:
    layer = PositionalEncoding(8, "emb", max_length=6)
    layer.build()
    table = np.array(layer.embeddings)
    assert table.shape == (6, 8)
    x = RNG.standard_normal((1, 8, 8)).astype("float32")
    expected = x + table[[0, 1, 2, 3, 4, 5, 5, 5]]
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_large_table_makes_the_same_logits_without_a_transposed_copy(monkeypatch, dtype) -> None:
    table = TokenEmbedding(vocab_size=7, hidden_size=4, softmax_bias=True, dtype=dtype)
    table.build()
    table.softmax_bias.assign(np.arange(7))
    rows = ops.cast(np.random.default_rng(0).normal(size=(3, 4)), table.compute_dtype)
    usual = table.kernel()
    monkeypatch.setattr(embedding, "LARGE", 28)
    large = table.kernel()
    assert (usual.matrix.shape, large.matrix.shape) == ((4, 7), (7, 4))
    expected, found = (np.asarray(ops.cast(one.logits(rows), "float32")) for one in (usual, large))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
