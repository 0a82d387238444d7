"""Checks under KERAS_BACKEND=jax that all variations compute the same; test_gpu_train.py runs it."""

import random
import sys
from pathlib import Path

import jax
import keras
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from gpu import examples, variations

from t2t_revival import HParams
from t2t_revival.training.model import build_model, compile_model

VOCAB = 30
H = HParams(
    num_hidden_layers=1, hidden_size=16, filter_size=32, num_heads=2, layer_prepostprocess_dropout=0.0
)
CHOSEN = [{}, {"attention": "xla"}, {"loss": "logits"}, {"norm": "derived"}]


def loss_and_gradients() -> tuple[float, list[np.ndarray]]:
    """Loss and gradients of a batch of several lengths."""
    random.seed(3)  # what Keras draws its seeds from; `set_random_seed` would import TensorFlow
    model = compile_model(build_model(H, VOCAB), H)
    batch = examples.mixed(60, 12, VOCAB)[0]
    inputs = {"inputs": batch.inputs, "targets": batch.targets}
    weights_of_tokens = ((batch.targets != 0) / np.float32(batch.target_tokens)).astype(np.float32)

    def loss(weights: list[jax.Array]) -> jax.Array:
        with keras.StatelessScope(list(zip(model.trainable_variables, weights, strict=True))):
            parts = model(inputs, training=True)
            return model.token_losses(inputs, batch.targets, parts, weights_of_tokens)[0]

    value, gradients = jax.jit(jax.value_and_grad(loss))([v.value for v in model.trainable_variables])
    return float(value), [np.asarray(gradient) for gradient in gradients]


def main() -> None:
    originals = {
        name: getattr(*choice[:2])
        for choices in variations.CHOICES.values()
        for name, choice in choices.items()
    }
    results = []
    for chosen in CHOSEN:
        variations.choose(chosen)
        results.append(loss_and_gradients())
        for choices in variations.CHOICES.values():
            for name, (module, function, _) in choices.items():
                setattr(module, function, originals[name])
    (expected, gradients), *rest = results
    assert 2 < expected < 6
    for value, others in rest:
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        for gradient, other in zip(gradients, others, strict=True):
            np.testing.assert_allclose(other, gradient, atol=1e-5)
    for generator in ("threefry2x32", "rbg"):
        seed = keras.random.SeedGenerator(7)
        first, second = (np.array(variations.jax_bytes(generator)((40, 30, 7), seed)) for _ in range(2))
        assert first.dtype == np.int8
        assert first.shape == (40, 30, 7)
        assert (first != second).mean() > 0.9
        assert set(first.ravel()) == set(range(-128, 128))
        assert abs(first.mean() + 0.5) < 4  # 5 standard errors
    print("the same")


if __name__ == "__main__":
    main()
