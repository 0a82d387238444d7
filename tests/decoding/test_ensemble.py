"""`Ensemble`: the mean of several models' probabilities, found by the search as by looking at all outputs."""

import numpy as np
import pytest

from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.ensemble import Ensemble
from t2t_revival.decoding.options import LOGARITHMS, PROBABILITIES
from t2t_revival.decoding.scoring import Scorer
from t2t_revival.decoding.shortlist import Shortlist
from t2t_revival.decoding.translations import Translations
from t2t_revival.errors import T2TError
from t2t_revival.model import Transformer
from tests.support.tiny_models import PAD, TINY, all_outputs, log_probs_of, logits_of, tiny, trimmed

FEW = 5  # tokens, so few that all outputs can be looked at
OTHER = TINY.replace(num_encoder_layers=1, num_decoder_layers=3, hidden_size=12, num_heads=3)


def mean_scores(models, source, outputs, alpha):
    """Scores of all outputs by the mean of the models' probabilities of each token, in NumPy."""
    probabilities = np.mean([np.exp(log_probs_of(model, source, outputs)) for model in models], axis=0)
    is_token = np.asarray(outputs) != PAD
    return (np.log(probabilities) * is_token).sum(1) / ((5 + is_token.sum(1)) / 6) ** alpha


@pytest.mark.slow
def test_the_search_finds_the_exhaustive_optimum_of_the_mean():
    models = [tiny(FEW, seed=1)[0], tiny(FEW, seed=2, hparams=OTHER)[0]]
    source, alpha, extra = [2, 3, 1], 0.6, 2
    outputs = all_outputs(FEW, len(source) + extra)
    expected = mean_scores(models, source, outputs, alpha)
    order = np.argsort(-expected)[:5]
    ids, scores = BeamSearch(Ensemble(models))([source], 256, alpha, extra, n=5)
    np.testing.assert_allclose(scores[0], expected[order], rtol=1e-4)
    assert [trimmed(row) for row in ids[0]] == [trimmed(row) for row in outputs[order]]
    alone = mean_scores(models[:1], source, outputs, alpha)
    assert list(np.argsort(-alone)[:5]) != list(order), "the second model counts"


@pytest.mark.slow
@pytest.mark.parametrize("mean", [PROBABILITIES, LOGARITHMS])
def test_scores_of_given_outputs_are_those_of_the_mean(mean):
    models = [tiny(FEW, seed=1)[0], tiny(FEW, seed=2, hparams=OTHER)[0]]
    source, outputs = [2, 3, 1], np.array([[3, 4, 1], [2, 2, 1], [1, 0, 0]])
    logits = np.stack([logits_of(model, [source] * 3, outputs) for model in models])
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))  # [models, outputs, length, vocab]
    by_mean = {
        PROBABILITIES: np.log(np.exp(log_probs).mean(0)),
        LOGARITHMS: log_probs.mean(0) - np.log(np.exp(log_probs.mean(0)).sum(-1, keepdims=True)),
    }
    taken = np.take_along_axis(by_mean[mean], outputs[:, :, None], axis=2)[:, :, 0]
    expected = np.where(outputs == PAD, 0, taken).sum(1)
    together = Ensemble(models, mean)
    np.testing.assert_allclose(Scorer(together)([source] * 3, outputs), expected, rtol=1e-4)
    ids, scores = BeamSearch(together, constant_weights=True)([source], alpha=0.0, extra_length=2)
    (score,) = Scorer(together)([source], ids[0])
    np.testing.assert_allclose(scores[0, 0], score, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("prefixes", [None, [[4, 2]]])
def test_an_ensemble_of_one_model_has_its_outputs(prefixes):
    """With a shortlist too, which all models share."""
    model, search = tiny(FEW, seed=1)
    source, how = [[2, 3, 1]], {"extra_length": 2, "n": 3, "prefixes": prefixes}
    translations = Translations(np.array([[0], [0], [4], [0], [0]], np.int32), np.array([], np.int32), "")
    shortlist = Shortlist(translations, by_line=False)
    for expected, found in (
        (search(source, **how), BeamSearch(Ensemble([model, model]))(source, **how)),
        (
            BeamSearch(model, shortlist=shortlist)(source, **how),
            BeamSearch(Ensemble([model, model]), shortlist=shortlist)(source, **how),
        ),
    ):
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-4)


def test_models_of_other_target_vocabularies_are_refused():
    models = [Transformer(TINY, FEW, target_vocab_size=size) for size in (7, 8)]
    with pytest.raises(T2TError, match="must have the same target_vocab_size"):
        Ensemble(models)


@pytest.mark.parametrize("models", [[], Transformer(TINY, FEW), [None], "ab"])
def test_others_than_models_are_refused(models):
    with pytest.raises(T2TError, match=r"an ensemble is of models|models: .*: give a list"):
        Ensemble(models)


def test_an_unknown_mean_is_refused():
    with pytest.raises(T2TError, match="mean='logarithm' must be probabilities or logarithms"):
        Ensemble([Transformer(TINY, FEW)], "logarithm")


def test_parameters_are_those_of_all():
    models = [Transformer(TINY, FEW), Transformer(OTHER, FEW)]
    together = Ensemble(models)
    assert together.count_params() == sum(model.count_params() for model in models)
    assert len(together.weights) == sum(len(model.weights) for model in models)


@pytest.mark.parametrize(
    ("changes", "vocab_size", "fault"),
    [
        ({}, FEW + 1, "same vocab_size"),
        ({"attention_window": 2}, FEW, "same attention_window"),
        ({"decoder_self_attention": "ssru"}, FEW, "same decoder_self_attention"),
        ({"deterministic_attention": True}, FEW, "an ensemble does not support deterministic_attention=True"),
    ],
)
def test_models_that_do_not_fit(changes, vocab_size, fault):
    with pytest.raises(T2TError, match=fault):
        Ensemble([Transformer(TINY, FEW), Transformer(TINY.replace(**changes), vocab_size)])
