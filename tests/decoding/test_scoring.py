"""Scores of given outputs, beside the logits of the whole model."""

import math

import numpy as np
import pytest

from t2t_revival.decoding.scoring import Score, per_token
from tests.support.searches import RESTRICTED, engines, padded, score, search
from tests.support.tiny_models import TINY, log_probs_of, tiny

SOURCES = [[3, 2, 4, 1], [5, 1], [6, 7, 1]]
TARGETS = [[4, 2, 6, 5, 1], [1], [2, 2, 1]]


@pytest.mark.parametrize("engine", engines("scores"))
def test_scores_are_sums_of_the_log_softmax_of_the_models_logits(engine):
    for seed in range(2):  # new weights are seen
        model = tiny(9, seed)
        expected = [
            log_probs_of(model, source, [target], engine in RESTRICTED and len(target) > 1).sum()
            for source, target in zip(SOURCES, TARGETS, strict=True)
        ]
        found = score(model, SOURCES, TARGETS, engine)
        compared = slice(None, None, 2) if engine in RESTRICTED else slice(None)
        np.testing.assert_allclose(found[compared], np.array(expected)[compared], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["attention", "ssru"])
@pytest.mark.parametrize("engine", engines("t2t", "ssru"))
def test_a_search_without_length_penalty_scores_its_outputs_so(engine, kind):
    model = tiny(9, seed=3, hparams=TINY.replace(decoder_self_attention=kind))
    for source, outputs in zip(
        SOURCES, search(model, SOURCES, engine=engine, beams=8, alpha=0.0, extra=5, n=8), strict=True
    ):
        assert len(outputs) > 1
        again = score(model, [source] * len(outputs), padded([one.ids for one in outputs]))
        np.testing.assert_allclose([one.score for one in outputs], again, rtol=1e-4)


def test_perplexity_is_per_token():
    mean, perplexity = per_token([Score(-3 * math.log(4), 3), Score(-math.log(2), 1)])
    assert mean == pytest.approx(-7 * math.log(2) / 4)
    assert perplexity == pytest.approx(2 ** (7 / 4))
    assert per_token([]) == (0.0, 1.0)
    assert math.isfinite(per_token([Score(-1e9, 1)])[1])
