"""Beam search, greedy decoding among it: every engine beside all outputs there are and T2T's algorithm."""

import keras
import numpy as np
import pytest

from t2t_revival import Transformer
from tests.support.search_engines import RESTRICTED, engines
from tests.support.searches import counted_traces, padded, search, trimmed
from tests.support.tiny_models import (
    EOS,
    PAD,
    TINY,
    VARIATIONS,
    all_outputs,
    length_penalty,
    log_softmax,
    logits_of,
    scores_of,
    tiny,
)

VOCAB = 11  # one for most tests, which then share a model and its compiled searches
FEW = 5  # so few that all outputs can be looked at
SOURCE = [2, 6, 3, 1]
LAYERS = {  # what an engine must have: hparams of models that have it
    "full": {},
    "one_layer": {"num_hidden_layers": 1, "num_heads": 1},
    "sequences": {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da", "pos": "emb"},
    "attention_window": {"attention_window": 3},
    "ssru": {"decoder_self_attention": "ssru"},
    "words": {"deterministic_attention": True},
    "key_channels": {"attention_key_channels": 4, "attention_value_channels": 12},
    **VARIATIONS,
}
IN_NIGHTLY = VARIATIONS.keys() - {"relative", "modern"}  # which have most of the others


def model_with(layers, seed, scale=3.0):
    model = tiny(VOCAB, seed, TINY.replace(**LAYERS[layers]), scale)
    if model.deterministic_attention:
        flags = np.zeros((VOCAB, 3), np.float32)
        flags[[1, 5], 0] = flags[7, 1] = flags[[2, 9], 2] = 1
        model.deterministic_attention.token_flags.assign(flags)
    return model


def prefers(model, token, factor):
    """Makes a token the most probable one, or, with a negative factor, the least probable one."""
    norm = model.decoder.layers[-1].feed_forward_residual.norm
    norm.beta.assign(np.ones(norm.beta.shape))
    norm.gamma.assign(norm.gamma * 0.1)
    embeddings = np.array(model.target_embedding.embeddings)
    embeddings[token] = factor
    model.target_embedding.embeddings.assign(embeddings)
    return model


def assert_same(found, expected):
    assert [one.ids for one in found] == [list(ids) for ids, _ in expected]
    np.testing.assert_allclose([one.score for one in found], [score for _, score in expected], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "source", "beams"),
    [(0.6, [2, 3, 1], 256), (0.0, [4, 1], 64), (2.0, [4, 1], 64), (-1.0, [2, 3, 1], 256)],
)
@pytest.mark.parametrize("engine", engines("wide"))
def test_a_beam_as_wide_as_all_prefixes_finds_the_exhaustive_optimum(engine, alpha, source, beams):
    outputs = all_outputs(FEW, len(source) + 2)
    for seed in range(3):
        model = tiny(FEW, seed)
        scores = scores_of(model, source, outputs, alpha, engine in RESTRICTED)
        n = 1 if engine in RESTRICTED else 5  # such an engine may stop before it has all others
        best = [(trimmed(outputs[place]), scores[place]) for place in np.argsort(-scores)[:n]]
        (found,) = search(model, [source], engine=engine, beams=beams, alpha=alpha, extra=2, n=n)
        assert_same(found, best)


def reference_search(model, source, beams, alpha, limit, n, early_stopping=False):
    """T2T's algorithm for one sentence in plain Python, without cache, bound or batch: the n best outputs.

    One beam is T2T's `_greedy_infer`: the best token alone is a candidate.
    """
    alive, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        rows = np.array([[*prefix, EOS] for prefix, _ in alive], np.int32)
        logits = log_softmax(logits_of(model, np.repeat([source], len(rows), axis=0), rows)[:, -1])
        candidates = [
            ((*prefix, token), total + row[token])
            for (prefix, total), row in zip(alive, logits, strict=True)
            for token in range(EOS, model.vocab_size)
        ]
        candidates = sorted(candidates, key=lambda c: -c[1])[: 2 * beams if beams > 1 else 1]
        finished += [(ids, s / length_penalty(length, alpha)) for ids, s in candidates if ids[-1] == EOS]
        finished = sorted(finished, key=lambda c: -c[1])[:n]
        alive = [c for c in candidates if c[0][-1] != EOS][:beams]
        if not alive:
            break
        next_best = alive[0][1] / length_penalty(length + 1, alpha)
        if early_stopping and len(finished) == n and next_best <= finished[-1][1]:
            break
    return finished or [(ids, s / length_penalty(limit, alpha)) for ids, s in alive[:n]]


@pytest.mark.slow
@pytest.mark.parametrize(("beams", "alpha"), [(1, 0.0), (2, 1.0), (4, 0.6), (3, -0.5)])
@pytest.mark.parametrize("engine", engines("t2t"))
def test_outputs_are_those_of_t2ts_algorithm(engine, beams, alpha):
    for seed, scale in ((2, 3.0), (4, 3.0), (7, 0.5)):
        model = tiny(VOCAB, seed, scale=scale)
        expected = reference_search(model, SOURCE, beams, alpha, len(SOURCE) + 3, beams)
        (found,) = search(model, [SOURCE], engine=engine, beams=beams, alpha=alpha, extra=3, n=beams)
        assert_same(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("beams", [pytest.param(1, marks=pytest.mark.nightly), 3])
@pytest.mark.parametrize(
    ("layers", "engine"),
    [
        pytest.param(
            layers, *engine.values, marks=[*engine.marks, *[pytest.mark.nightly] * (layers in IN_NIGHTLY)]
        )
        for layers in LAYERS
        if layers != "full"
        for engine in engines("t2t", layers)
    ],
)
def test_so_are_those_of_models_with_other_layers(engine, layers, beams):
    """Sentences that are done leave the batch, and hypotheses change their places."""
    model, sources = model_with(layers, 2, 0.5), [SOURCE, [5, 1], [7, 1]]
    found = search(model, sources, engine=engine, beams=beams, extra=6, n=beams)
    for source, outputs in zip(sources, found, strict=True):
        assert_same(outputs, reference_search(model, source, beams, 0.6, len(source) + 6, beams))


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines("t2t", "early_stopping"))
def test_early_stopping_looks_one_position_ahead(engine):
    """It stops earlier: with these weights, later outputs would be better."""
    for seed in range(2):
        model, limit = prefers(tiny(VOCAB, seed, scale=0.5), EOS, 0.2), len(SOURCE) + 12
        expected = reference_search(model, SOURCE, 4, 4.0, limit, 1, early_stopping=True)
        how = {"engine": engine, "alpha": 4.0, "extra": 12}
        (found,) = search(model, [SOURCE], early_stopping=True, **how)
        assert_same(found, expected)
        assert search(model, [SOURCE], **how)[0][0].score > found[0].score


@pytest.mark.slow
@pytest.mark.parametrize(("vocab_size", "beams"), [(1030, 4), (3000, 20)])
@pytest.mark.parametrize("engine", engines("t2t"))
def test_the_best_of_many_tokens_are_found(engine, vocab_size, beams):
    model = tiny(vocab_size, seed=1, scale=0.5)
    expected = reference_search(model, [3, 1], beams, 0.6, 4, beams)
    (found,) = search(model, [[3, 1]], engine=engine, beams=beams, extra=2, n=beams)
    assert_same(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 0.6, -1.0])
@pytest.mark.parametrize("engine", engines())
def test_scores_are_those_of_the_whole_model(engine, alpha):
    model = tiny(VOCAB, seed=6, scale=0.5)
    (found,) = search(model, [SOURCE], engine=engine, beams=3, alpha=alpha, extra=6, n=3)
    scores = scores_of(model, SOURCE, padded([one.ids for one in found]), alpha, engine in RESTRICTED)
    np.testing.assert_allclose([one.score for one in found], scores, rtol=1e-3)
    assert list(scores) == sorted(scores, reverse=True)
    assert len({tuple(one.ids) for one in found}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
def test_a_sentence_does_not_depend_on_its_batch(engine):
    model = tiny(VOCAB, seed=5)
    sources = [[5, 1], [3, 4, 10, 1], [9, 9, 2, 7, 6, 5, 1], [8, 2, 1]]
    how = {"engine": engine, "beams": 3, "extra": 4, "n": 3}
    for source, outputs in zip(sources, search(model, sources, **how), strict=True):
        (alone,) = search(model, [source], **how)
        assert_same(outputs, [(one.ids, one.score) for one in alone])


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines("settings"))
def test_each_sentence_may_have_settings_of_its_own(engine):
    model = tiny(VOCAB, seed=6, scale=0.5)
    sources = [[3, 2, 4, 1], [5, 1], [6, 7, 8, 2, 1], [4, 8, 1]]
    settings = {
        "beams": [1, 5, 2, 3],
        "alpha": [0.6, 0.0, 1.0, -0.5],
        "extra": [6, 3, 0, 4],
        "n": [1, 4, 2, 1],
    }
    found = search(model, sources, engine=engine, **settings)
    for source, outputs, *own in zip(sources, found, *settings.values(), strict=True):
        (alone,) = search(model, [source], **dict(zip(settings, own, strict=True)))
        assert_same(outputs, [(one.ids, one.score) for one in alone])


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
def test_each_sentence_has_its_own_limit(engine):
    model, sources = prefers(tiny(VOCAB, seed=5), EOS, -10), [[5, 1], [3, 4, 10, 6, 1]]
    for extra in (0, 3):
        found = search(model, sources, engine=engine, beams=2, extra=extra)
        for source, (output,) in zip(sources, found, strict=True):
            assert len(output.ids) == len(source) + extra
            assert EOS not in output.ids
            score = scores_of(model, source, [output.ids], 0.6, engine in RESTRICTED)[0]
            assert output.score == pytest.approx(score, rel=1e-3)


@pytest.mark.parametrize("engine", engines())
def test_pad_is_never_an_output(engine):
    model = prefers(tiny(VOCAB, seed=1), PAD, 10)
    (found,) = search(model, [[4, 3, 1]], engine=engine, beams=2, extra=3, n=2)
    assert len(found) == 2
    for output in found:  # which ends where PAD stands
        assert output.ids[-1] == EOS or len(output.ids) == 6


@pytest.mark.parametrize("engine", engines("empty"))
def test_an_empty_sentence_has_no_output_at_once(engine):
    assert search(tiny(VOCAB), [[0], [0]], engine=engine, beams=2, extra=5) == [[], []]
    ((output,), none) = search(tiny(VOCAB), [[5, 1], []], engine=engine, beams=2, extra=5)
    assert output.ids
    assert none == []


@pytest.mark.parametrize("engine", engines("t2t"))
def test_there_may_be_fewer_outputs_than_asked_for(engine):
    (found,) = search(tiny(FEW), [[2, 1]], engine=engine, beams=8, extra=0, n=8)
    assert sorted(one.ids for one in found) == [[1], [2, 1], [3, 1], [4, 1]]


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines("programs"))
def test_new_weights_and_settings_are_seen_without_a_new_program(engine):
    how = {"engine": engine, "beams": 2, "extra": 7}
    first = search(tiny(VOCAB, seed=7), [SOURCE], alpha=0.1, **how)
    with counted_traces() as traces:
        other = search(tiny(VOCAB, seed=0), [SOURCE[1:]], alpha=0.2, **how)
        again = search(tiny(VOCAB, seed=7), [SOURCE], alpha=0.1, **how)
        if engine == "tensorflow":  # to which these are inputs too
            search(tiny(VOCAB, seed=7), [SOURCE], engine=engine, beams=3, extra=6, n=2)
    assert again == first != other
    assert not traces["programs"]


@pytest.mark.slow
def test_a_model_of_mixed_precision_is_decoded():
    ((expected,),) = search(tiny(VOCAB), [SOURCE], alpha=0.0)
    mixed = Transformer(TINY, VOCAB, dtype="mixed_bfloat16")
    mixed.set_weights(tiny(VOCAB).get_weights())
    ((found,),) = search(mixed, [SOURCE], alpha=0.0)
    assert found.score == pytest.approx(expected.score, abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines("frozen"))
def test_a_frozen_model_has_the_same_outputs(engine):
    keras.utils.set_random_seed(6)
    model, sources = Transformer(TINY, VOCAB), [[5, 3, 1], [7, 1]]
    how = {"engine": engine, "beams": 3, "extra": 4, "n": 2}
    for found, outputs in zip(
        search(model, sources, frozen=True, **how), search(model, sources, **how), strict=True
    ):
        assert_same(found, [(one.ids, one.score) for one in outputs])


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [-10.0, 10.0])
@pytest.mark.parametrize("engine", engines())
def test_the_largest_exponents_give_scores(engine, alpha):
    model = tiny(VOCAB, seed=1, scale=0.5)
    (found,) = search(model, [[3, 4, 5, 1]], engine=engine, beams=2, alpha=alpha, extra=40, n=2)
    assert np.isfinite([one.score for one in found]).all()
    assert found[0].score >= found[1].score


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines("spare"))
def test_spare_outputs_come_after_the_n_best_which_stay_as_they_are(engine):
    found = 0
    for seed in range(3):
        model = tiny(VOCAB, seed, scale=1.0)
        asked = {"engine": engine, "beams": 4, "extra": 8}
        (few,), (more,) = (search(model, [SOURCE], n=2, spare=spare, **asked) for spare in (0, 5))
        assert more[: len(few)] == few
        assert len({tuple(one.ids) for one in more}) == len(more) <= 7
        assert [one.score for one in more] == sorted((one.score for one in more), reverse=True)
        scores = scores_of(model, SOURCE, padded([one.ids for one in more]), 0.6, engine in RESTRICTED)
        np.testing.assert_allclose([one.score for one in more], scores, rtol=1e-4)
        found += len(more) - len(few)
    assert found > 0
