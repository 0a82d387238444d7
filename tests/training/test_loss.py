"""Section 5.4: label-smoothed cross-entropy, also in one piece with the last product, and its sum."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from t2t_revival import TokenCrossEntropy
from t2t_revival.training.loss import LEAST, linear_cross_entropy, smoothed_cross_entropy

RNG = np.random.default_rng(9)


def plain(logits: np.ndarray, labels: np.ndarray, smoothing: float) -> np.ndarray:
    """Cross-entropy against 1 - eps and eps / (vocab - 1), less that distribution's entropy; float64."""
    logits = logits.astype("float64")
    vocab = logits.shape[-1]
    shifted = logits - logits.max(-1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    goal = np.full(logits.shape, smoothing / (vocab - 1))
    goal[np.arange(len(labels)), labels] = 1 - smoothing
    entropy = -(goal * np.log(np.where(goal > 0, goal, 1))).sum(-1)
    return -(goal * log_probabilities).sum(-1) - entropy


@settings(max_examples=25, deadline=None)
@given(
    tokens=st.integers(1, 5),
    vocab=st.integers(2, 30),
    smoothing=st.sampled_from([0.0, 0.1, 0.2, 0.9]),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
)
def test_value(tokens: int, vocab: int, smoothing: float, scale: float) -> None:
    logits = (RNG.standard_normal((tokens, vocab)) * scale).astype("float32")
    labels = RNG.integers(0, vocab, tokens).astype("int32")
    exact, tolerance = plain(logits, labels, smoothing), 2e-5 * max(1, scale)
    got = ops.convert_to_numpy(smoothed_cross_entropy(logits, labels, smoothing))
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=tolerance)

    got, unsmoothed = linear_cross_entropy(logits, np.eye(vocab, dtype="float32"), labels, smoothing)
    possible = plain(logits, labels, 0.0) < -np.log(LEAST)  # below, its docstring says, the value is too low
    np.testing.assert_allclose(
        ops.convert_to_numpy(got)[possible], exact[possible], rtol=1e-5, atol=tolerance
    )
    exact = plain(logits, labels, 0.0)
    np.testing.assert_allclose(
        ops.convert_to_numpy(unsmoothed)[possible], exact[possible], rtol=1e-5, atol=tolerance
    )


@pytest.mark.parametrize(("prefix", "smoothing"), [("ls01", 0.1), ("ls02", 0.2), ("ls0", 0.0)])
def test_value_is_that_of_tensor2tensor(prefix: str, smoothing: float, reference_dir: Path) -> None:
    known = np.load(reference_dir / "cross_entropy.npz")
    labels = known["labels"]
    mask = (labels != 0).astype("float32")
    assert mask.sum() == known[f"{prefix}_denominator"]
    loss = TokenCrossEntropy(label_smoothing=smoothing)
    total = float(loss(labels, known["logits"], sample_weight=mask))
    assert total == pytest.approx(float(known[f"{prefix}_numerator"]), rel=1e-5)
    mean = float(loss(labels, known["logits"], sample_weight=mask / mask.sum()))
    assert mean == pytest.approx(float(known[f"{prefix}_loss"]), rel=1e-5)
    if smoothing:
        per_token = ops.convert_to_numpy(loss.call(labels, known["logits"])) * mask
        np.testing.assert_allclose(per_token, known[f"{prefix}_per_token"] * mask, atol=1e-5)
        tokens, vocab = labels.size, known["logits"].shape[-1]
        flat, _ = linear_cross_entropy(
            known["logits"].reshape(tokens, vocab), np.eye(vocab, dtype="float32"), labels.ravel(), smoothing
        )
        expected = (known[f"{prefix}_per_token"] * mask).ravel()
        np.testing.assert_allclose(ops.convert_to_numpy(flat) * mask.ravel(), expected, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("bfloat16", 8e-3), ("float16", 2e-3)])
def test_gradient_is_that_of_the_plain_formula(smoothing: float, dtype: str, tolerance: float) -> None:
    logits = tf.cast(RNG.standard_normal((4, 9)) * 2, dtype)
    labels = np.array([0, 3, 8, 3], "int32")
    upstream = np.array([1.0, 0.0, -0.5, 2.0], "float32")
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = tf.reduce_sum(smoothed_cross_entropy(logits, labels, smoothing) * upstream)
    got = tape.gradient(value, logits)
    assert got.dtype == logits.dtype

    exact = tf.cast(logits, tf.float64)
    goal = tf.one_hot(labels, 9, 1 - smoothing, smoothing / 8, dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(exact)
        value = -tf.reduce_sum(goal * tf.nn.log_softmax(exact) * upstream[:, None].astype("float64"))
    np.testing.assert_allclose(tf.cast(got, tf.float64), tape.gradient(value, exact), atol=tolerance)


def linear_gradients(
    x: tf.Tensor, embeddings: np.ndarray, labels: np.ndarray, smoothing: float, upstream: np.ndarray
) -> list[tf.Tensor]:
    matrix = tf.constant(embeddings)
    with tf.GradientTape() as tape:
        tape.watch([x, matrix])
        smoothed, unsmoothed = linear_cross_entropy(x, matrix, labels, smoothing)
        value = tf.reduce_sum(smoothed * upstream) + tf.reduce_sum(unsmoothed)  # which has no gradient
    return tape.gradient(value, [x, matrix])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 3e-2), ("float16", 1e-2)])
def test_linear_gradients_are_those_of_the_plain_formula(
    smoothing: float, dtype: str, tolerance: float
) -> None:
    draw = np.random.default_rng(3)  # its own, so that it does not hang on which tests ran before
    x = tf.cast(draw.standard_normal((4, 6)), dtype)
    embeddings = tf.cast(tf.cast(draw.standard_normal((9, 6)), dtype), tf.float32).numpy()
    labels = np.array([0, 3, 8, 3], "int32")
    upstream = np.array([1.0, 0.0, -0.5, 2.0], "float32")
    dx, de = linear_gradients(x, embeddings, labels, smoothing, upstream)
    assert (dx.dtype, de.dtype) == (x.dtype, tf.float32)

    exact_x, exact_e = tf.cast(x, tf.float64), tf.constant(embeddings, tf.float64)
    goal = tf.one_hot(labels, 9, 1 - smoothing, smoothing / 8, dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([exact_x, exact_e])
        log_probabilities = tf.nn.log_softmax(exact_x @ tf.transpose(exact_e))
        value = -tf.reduce_sum(goal * log_probabilities * upstream[:, None].astype("float64"))
    for got, expected in zip((dx, de), tape.gradient(value, [exact_x, exact_e]), strict=True):
        np.testing.assert_allclose(tf.cast(got, tf.float64), expected, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_token_held_for_impossible_keeps_loss_and_gradient_finite(dtype: str) -> None:
    """A score 200 below the best has a float32 softmax of 0."""
    x = tf.cast([[200.0, 0.0, 0.0]], dtype)
    labels, identity = np.array([1], "int32"), np.eye(3, dtype="float32")
    (value,) = linear_cross_entropy(x, identity, labels, 0.0)[0].numpy()
    assert 80 < value <= 200
    dx, _ = linear_gradients(x, identity, labels, 0.0, np.ones(1, "float32"))
    np.testing.assert_allclose(tf.cast(dx, tf.float32), [[1, -1, 0]], atol=1e-6)


def test_bfloat16_logits_are_summed_in_float32() -> None:
    logits = tf.cast(RNG.standard_normal((3, 2000)), tf.bfloat16)
    labels = np.array([5, 0, 1999], "int32")
    got = smoothed_cross_entropy(logits, labels, 0.1)
    assert got.dtype == tf.float32
    exact = plain(tf.cast(logits, tf.float64).numpy(), labels, 0.1)
    np.testing.assert_allclose(got, exact, atol=1e-4)
