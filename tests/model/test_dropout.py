"""Section 5.4: dropout."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from keras import ops

from t2t_revival.model.dropout import Dropout, replica


def dropped(rate: float, *shape: int, seed: int = 1) -> np.ndarray:
    keras.utils.set_random_seed(seed)
    layer = Dropout(rate)
    layer.build()
    return ops.convert_to_numpy(layer(np.ones(shape, "float32"), training=True))


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_share_and_scale(rate: float) -> None:
    out = dropped(rate, 400, 501)
    deviation = (rate * (1 - rate) / out.size) ** 0.5
    assert abs((out == 0).mean() - rate) < 5 * deviation
    assert np.unique(out[out > 0]).size == 1
    assert out.max() == pytest.approx(1 / (1 - rate), rel=1e-4)
    assert abs(out.mean() - 1) < 5 * deviation / (1 - rate)


@pytest.mark.parametrize("lag", [1, 2, 3, 500, 501])
def test_neighbours_are_independent(lag: int) -> None:
    """Four elements share a random word, so that lags 1 to 3 are the ones to look at."""
    kept = (dropped(0.3, 400, 501) > 0).ravel().astype("float64")
    kept = (kept - kept.mean()) / kept.std()
    assert abs((kept[:-lag] * kept[lag:]).mean()) < 5 / kept.size**0.5


def test_replicas_draw_bits_of_their_own() -> None:
    rows = []
    for number in (0, 1, 2):
        with replica(number):
            rows.append((dropped(0.3, 400, 501) > 0).ravel().astype("float64"))
    np.testing.assert_array_equal(rows[0], (dropped(0.3, 400, 501) > 0).ravel(), "the first as if alone")
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(np.corrcoef(rows[one], rows[other])[0, 1]) < 5 / rows[0].size ** 0.5


def test_the_rate_is_exact_over_many_calls() -> None:
    """0.1 is 25.6 of 256 levels: a threshold that never changed would be off by 1.6% or more."""
    keras.utils.set_random_seed(5)
    layer = Dropout(0.1)
    layer.build()
    x = np.ones((200, 200), "float32")
    shares = [(ops.convert_to_numpy(layer(x, training=True)) == 0).mean() for _ in range(150)]
    assert abs(np.mean(shares) - 0.1) < 4 * np.std(shares) / len(shares) ** 0.5
    assert np.std(shares) < 0.004


def test_calls_differ_and_a_seed_repeats_them() -> None:
    keras.utils.set_random_seed(7)
    layer = Dropout(0.5)
    layer.build()
    x = np.ones((9, 9), "float32")
    first, second = (ops.convert_to_numpy(layer(x, training=True)) for _ in range(2))
    assert (first != second).any()
    assert (dropped(0.5, 9, 9, seed=7) == first).all()


@pytest.mark.slow
@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_any_shape(shape: list[int]) -> None:
    out = dropped(0.5, *shape)
    assert out.shape == tuple(shape)
    assert dropped(0.5, 0, *shape).shape == (0, *shape)
    assert set(np.unique(out)) <= {0.0, 2.0}


def test_a_rate_just_below_1_drops_nearly_all() -> None:
    assert (dropped(1 - 1e-9, 10, 10) == 0).mean() > 0.9


def test_the_gradient_is_masked_alike() -> None:
    layer = Dropout(0.4)
    layer.build()
    x = tf.ones((30, 31))
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = layer(x, training=True)
    assert (tape.gradient(out, x).numpy() == out.numpy()).all()
