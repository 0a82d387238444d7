"""Scores of given outputs, beside the logits of the whole model."""

import math

import numpy as np
import pytest

from t2t_revival.decoding.outputs import Score, per_token
from tests.support.search_engines import RESTRICTED, engines
from tests.support.searches import score
from tests.support.tiny_models import PRE_NORM, TINY, VARIATIONS, log_probs_of, tiny

SOURCES = [[3, 2, 4, 1], [5, 1], [2, 5, 8, 6] * 4 + [1]]
TARGETS = [[4, 2, 6, 5, 1], [1], [2, 2, 1]]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        PRE_NORM,
        {"pos": "timing", "num_encoder_layers": 1},
        {"pos": "emb", "shared_embedding_and_softmax_weights": False, "max_length": 8},
        {"attention_key_channels": 4, "attention_value_channels": 4, "norm_epsilon": 0.1},
        *VARIATIONS.values(),
    ],
    ids=str,
)
@pytest.mark.parametrize("engine", engines("scores"))
def test_scores_are_sums_of_the_log_softmax_of_the_models_logits(engine, changes):
    """Learned positions beyond the last share its vector; new weights are seen."""
    for seed in range(2):
        model = tiny(9, seed, TINY.replace(**changes))
        for weight in model.weights:  # norms and biases that could not be told from those of no training
            if len(weight.shape) == 1:
                weight.assign(weight + np.random.default_rng(1).normal(0, 0.3, weight.shape))
        expected = [
            log_probs_of(model, source, [target], without_pad=engine in RESTRICTED).sum()
            for source, target in zip(SOURCES, TARGETS, strict=True)
        ]
        np.testing.assert_allclose(score(model, SOURCES, TARGETS, engine), expected, rtol=1e-3)


def test_perplexity_is_per_token():
    mean, perplexity = per_token([Score(-3 * math.log(4), 3), Score(-math.log(2), 1)])
    assert mean == pytest.approx(-7 * math.log(2) / 4)
    assert perplexity == pytest.approx(2 ** (7 / 4))
    assert per_token([]) == (0.0, 1.0)
    assert math.isfinite(per_token([Score(-1e9, 1)])[1])
