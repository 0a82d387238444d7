"""How weights start: tensor2tensor's `uniform_unit_scaling` with a gain of 1, and what its layers choose."""

import keras
import numpy as np
import pytest

from t2t_revival import Transformer, registry

VOCAB, HIDDEN, FILTER = 500, 64, 128


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    keras.utils.set_random_seed(4)
    h = registry.hparams("transformer_tiny").replace(hidden_size=HIDDEN, filter_size=FILTER)
    return {w.path: np.array(w) for w in Transformer(h, VOCAB).trainable_weights}


def test_matrices_are_uniform_within_the_square_root_of_3_by_the_mean_of_both_sides(
    weights: dict[str, np.ndarray],
) -> None:
    matrices = 0
    for path, weight in weights.items():
        if "attention/" in path:
            parts = np.split(weight, weight.shape[1] // HIDDEN, axis=1)
        elif "/kernel" in path:
            parts = [weight]
        else:
            continue
        for part in parts:
            bound = (3 / np.mean(part.shape)) ** 0.5
            assert 0.98 * bound < np.abs(part).max() <= bound, path
            assert part.std() == pytest.approx(bound / 3**0.5, rel=0.05), path
            matrices += 1
    assert matrices == 2 * (4 + 2) + 2 * (4 + 4 + 2)


def test_embeddings_are_normal_with_the_deviation_of_one_by_the_square_root_of_the_width(
    weights: dict[str, np.ndarray],
) -> None:
    (embeddings,) = (weight for path, weight in weights.items() if "embeddings" in path)
    assert embeddings.shape == (VOCAB, HIDDEN)
    assert embeddings.std() == pytest.approx(HIDDEN**-0.5, rel=0.02)
    assert np.abs(embeddings).max() > 3.5 * HIDDEN**-0.5


def test_vectors_do_nothing_at_first(weights: dict[str, np.ndarray]) -> None:
    vectors = {path: weight for path, weight in weights.items() if weight.ndim == 1}
    names = {path.rsplit("/", 1)[-1] for path in vectors}
    assert names == {"gamma", "beta", "bias_1", "bias_2", "target_space"}
    for path, vector in vectors.items():
        assert (vector == (1 if path.endswith("gamma") else 0)).all(), path
