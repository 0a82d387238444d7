"""The recurrent unit against NumPy: its states, their gradient, and its steps."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from keras import ops

from t2t_revival import HParams, Transformer
from t2t_revival.model import LayerConfig
from t2t_revival.model.extensions.ssru import SSRU, recurrence
from t2t_revival.model.incremental import Step, empty_cache, step
from tests.support.numpy_transformer import normal_arrays, ssru

RNG, normal = np.random.default_rng(9), normal_arrays(9)
SPEC = tf.TensorSpec([None, None, 4])  # [length, batch, hidden]


def make() -> SSRU:
    """A unit of 4 channels whose bias matters."""
    layer = SSRU(LayerConfig(hidden_size=4), name="unit")
    layer.build()
    layer.forget_bias.assign(RNG.standard_normal(4))
    return layer


def states_of(forget: np.ndarray, new: np.ndarray) -> np.ndarray:
    state, states = np.zeros(new.shape[1:]), []
    for f, u in zip(forget, new, strict=True):
        state = f * state + (1 - f) * u
        states.append(state)
    return np.stack(states)


@given(length=st.integers(1, 12), sentences=st.integers(1, 3), beams=st.integers(1, 3))
def test_all_positions_and_steps_equal_numpy(length: int, sentences: int, beams: int) -> None:
    layer, x = make(), normal(sentences * beams, length, 4)
    weights = [np.array(weight, "float64") for weight in layer.weights]
    expected = np.stack([ssru(sentence, *weights) for sentence in x])
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, atol=1e-5)
    cache = empty_cache(layer, sentences, beams, 0)
    for position in range(length):
        output, cache = step(layer, x[:, position], cache, Step(beams, None, None, None))
        assert cache.shape == (sentences, beams, 4), "it does not grow"
        np.testing.assert_allclose(ops.convert_to_numpy(output), expected[:, position], atol=1e-5)


@pytest.mark.parametrize("xla", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_gradients_equal_differences_in_numpy(xla: bool) -> None:
    """The loss weighs each state; the graph does not know the length of the sentences."""
    inputs = [RNG.uniform(0, 1, (5, 2, 4)), RNG.standard_normal((5, 2, 4))]
    weight = RNG.standard_normal((5, 2, 4))

    @tf.function(input_signature=[SPEC, SPEC], jit_compile=xla)
    def gradients(forget: tf.Tensor, new: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch((forget, new))
            loss = tf.reduce_sum(tf.cast(weight, tf.float32) * recurrence(forget, new) ** 2)
        return tape.gradient(loss, (forget, new))

    def loss(*inputs: np.ndarray) -> float:
        return float((weight * states_of(*inputs) ** 2).sum())

    found = gradients(*(tf.constant(x, tf.float32) for x in inputs))
    for changed, gradient in enumerate(found):
        for place in np.ndindex(5, 2, 4):
            up, down = ([x.copy() for x in inputs] for _ in range(2))
            up[changed][place] += 1e-5
            down[changed][place] -= 1e-5
            expected = (loss(*up) - loss(*down)) / 2e-5
            assert gradient[place].numpy() == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_long_sentences_stay_finite() -> None:
    """A closed form would divide by products of f, which soon are 0."""
    forget, new = (np.full((400, 1, 4), value, "float32") for value in (1e-3, 2.0))
    tensors = [tf.constant(x) for x in (forget, new)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        states = recurrence(*tensors)
    np.testing.assert_allclose(states, states_of(forget, new), rtol=1e-5)
    assert all(np.isfinite(gradient).all() for gradient in tape.gradient(states, tensors))


def test_names_that_checkpoints_rely_on(tiny_hparams: HParams) -> None:
    """A change here makes checkpoints that people have unreadable."""
    decoder = Transformer(tiny_hparams.replace(decoder_self_attention="ssru"), 11).decoder
    found = {w.path: tuple(w.shape) for w in decoder.layers[1].self_attention.weights}
    prefix, hidden = "transformer/decoder/layer_1/self_attention", tiny_hparams.hidden_size
    assert found == {f"{prefix}/kernel": (hidden, 2 * hidden), f"{prefix}/forget_bias": (hidden,)}
