"""`Ensemble`: the mean of several models' probabilities, found by the search as by looking at all outputs."""

import numpy as np
import pytest

from t2t_revival import T2TError, Transformer
from tests.support.search_engines import engines
from tests.support.searches import ensemble, score, search, trimmed
from tests.support.tiny_models import PAD, TINY, all_outputs, length_penalty, log_softmax, logits_of, tiny

FEW = 5  # tokens, so few that all outputs can be looked at
OTHER = TINY.replace(num_encoder_layers=1, num_decoder_layers=3, hidden_size=12, num_heads=3)
MEANS = {
    "probabilities": lambda log_probs: np.log(np.exp(log_probs).mean(0)),
    "logarithms": lambda log_probs: log_softmax(log_probs.mean(0)),
}


def mean_log_probs(models, source, outputs, mean):
    """Log-probabilities of all outputs by the mean of the models' probabilities of each token, in NumPy."""
    logits = np.stack([logits_of(model, [source] * len(outputs), outputs) for model in models])
    taken = np.take_along_axis(MEANS[mean](log_softmax(logits)), outputs[:, :, None], axis=2)[:, :, 0]
    return (taken * (outputs != PAD)).sum(1)


@pytest.mark.slow
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("engine", engines("ensemble", "wide"))
def test_the_search_finds_the_exhaustive_optimum_of_the_mean(engine, mean):
    models = [tiny(FEW, seed=1), tiny(FEW, seed=2, hparams=OTHER)]
    source, alpha, extra = [2, 3, 1], 0.6, 2
    outputs = all_outputs(FEW, len(source) + extra)
    penalty = length_penalty((outputs != PAD).sum(1), alpha)
    expected = mean_log_probs(models, source, outputs, mean) / penalty
    order = np.argsort(-expected)[:5]
    together = ensemble(*models, mean=mean)
    (found,) = search(together, [source], engine=engine, beams=256, alpha=alpha, extra=extra, n=5)
    np.testing.assert_allclose([one.score for one in found], expected[order], rtol=1e-4)
    assert [one.ids for one in found] == [trimmed(row) for row in outputs[order]]
    alone = mean_log_probs(models[:1], source, outputs, mean) / penalty
    assert list(np.argsort(-alone)[:5]) != list(order), "the second model counts"


@pytest.mark.slow
@pytest.mark.parametrize("mean", MEANS)
def test_scores_of_given_outputs_are_those_of_the_mean(mean):
    models = [tiny(FEW, seed=1), tiny(FEW, seed=2, hparams=OTHER)]
    source, outputs = [2, 3, 1], np.array([[3, 4, 1], [2, 2, 1], [1, 0, 0]])
    together = ensemble(*models, mean=mean)
    expected = mean_log_probs(models, source, outputs, mean)
    np.testing.assert_allclose(score(together, [source] * 3, outputs), expected, rtol=1e-4)
    ((best,),) = search(together, [source], alpha=0.0, extra=2, frozen=True)
    np.testing.assert_allclose(best.score, score(together, [source], [best.ids]), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("prefixes", [None, [[4, 2]]])
@pytest.mark.parametrize("engine", engines("ensemble", "prefixes"))
def test_an_ensemble_of_one_model_has_its_outputs(engine, prefixes):
    model, how = tiny(FEW, seed=1), {"engine": engine, "extra": 2, "n": 3, "prefixes": prefixes}
    (expected,) = search(model, [[2, 3, 1]], **how)
    (found,) = search(ensemble(model, model), [[2, 3, 1]], **how)
    assert [one.ids for one in found] == [one.ids for one in expected]
    np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], rtol=1e-4)


@pytest.mark.parametrize("models", [[], [None], "ab"])
def test_others_than_models_are_refused(models):
    with pytest.raises(T2TError, match=r"an ensemble is of models"):
        ensemble(*models)


def test_an_unknown_mean_is_refused():
    with pytest.raises(T2TError, match="mean='logarithm' must be probabilities or logarithms"):
        ensemble(Transformer(TINY, FEW), mean="logarithm")


@pytest.mark.parametrize(
    ("sizes", "changes", "fault"),
    [
        ((FEW, FEW + 1), {}, "same vocab_size"),
        ((FEW, FEW, 8), {}, "same target_vocab_size"),
        ((FEW, FEW), {"attention_window": 2}, "same attention_window"),
        ((FEW, FEW), {"decoder_self_attention": "ssru"}, "same decoder_self_attention"),
        ((FEW, FEW), {"deterministic_attention": True}, "an ensemble does not support"),
    ],
)
def test_models_that_do_not_fit(sizes, changes, fault):
    one = Transformer(TINY, sizes[0])
    other = Transformer(TINY.replace(**changes), sizes[1], target_vocab_size=sizes[-1] if sizes[2:] else None)
    with pytest.raises(T2TError, match=fault):
        ensemble(one, other)
