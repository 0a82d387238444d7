"""Samples: their frequencies beside the model's probabilities, and their scores."""

import functools

import numpy as np
import pytest

from t2t_revival.parsing.symbols import token_flags
from tests.support import tiny_models
from tests.support.search_engines import engines
from tests.support.searches import Samples, padded, search
from tests.support.tiny_models import EOS, PAD, TINY, log_softmax, logits_of, scores_of

SOURCE = [3, 2, 4, 1]
SAMPLES = 4000
VOCAB = 9  # one for most tests, which then share a model and its compiled samplers
tiny = functools.partial(tiny_models.tiny, hparams=TINY.replace(num_hidden_layers=1))
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("engine", engines("samples"))]


def draw(engine, model, sources=(SOURCE,), n=1, extra=50, alpha=0.6, prefixes=None, trees=(), **samples):
    how = {"n": n, "extra": extra, "alpha": alpha, "prefixes": prefixes, "trees": trees}
    return search(model, sources, engine=engine, samples=Samples(**samples), **how)


def ids_of(outputs):
    return [one.ids for one in outputs]


def first_logits(model, before=()):
    """The model's logits of the token after `before`, float64 [vocab], in which PAD cannot come."""
    logits = logits_of(model, [SOURCE], [[*before, EOS]])[0, -1]
    logits[PAD] = -np.inf
    return logits


def softmax(logits):
    return np.exp(log_softmax(logits))


def frequencies(tokens, vocab_size):
    return np.bincount(tokens, minlength=vocab_size) / len(tokens)


def chi_square(found, expected, samples):
    """Pearson's statistic over tokens that can come."""
    there = expected > 0
    return samples * ((found - expected)[there] ** 2 / expected[there]).sum()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_first_tokens_are_distributed_as_the_softmax_at_that_temperature(engine, temperature):
    model = tiny(VOCAB, seed=1, scale=1.5)
    expected = softmax(first_logits(model) / temperature)
    assert expected.max() < 0.9, "a distribution that says something"
    (outputs,) = draw(engine, model, n=SAMPLES, extra=0, temperature=temperature, seed=5)
    found = frequencies([ids[0] for ids in ids_of(outputs)], VOCAB)
    assert found[PAD] == 0
    assert chi_square(found, expected, SAMPLES) < 24.3  # 7 degrees of freedom: one of 1,000 is above it


def test_so_are_second_tokens_after_each_first_one_over_many_lines(engine):
    model, lines = tiny(VOCAB, seed=2, scale=1.0), 60
    drawn = draw(engine, model, [SOURCE] * lines, n=100, extra=0, lines=tuple(range(lines)))
    pairs = [ids[:2] for outputs in drawn for ids in ids_of(outputs)]
    seen = 0
    for first in range(2, VOCAB):
        after = [second for one, *rest in pairs if one == first for second in rest]
        if len(after) < 200:
            continue
        expected = softmax(first_logits(model, [first]))
        assert chi_square(frequencies(after, VOCAB), expected, len(after)) < 24.3  # 7 degrees, 0.1%
        seen += 1
    assert seen >= 2


@pytest.mark.parametrize("vocab_size", [VOCAB, 1030])
def test_no_token_but_the_k_best_is_drawn_and_these_as_the_model_says(engine, vocab_size):
    model, k = tiny(vocab_size, seed=3, scale=1.0), 3
    logits = first_logits(model)
    best = np.argsort(-logits)[:k]
    expected = np.zeros(vocab_size)
    expected[best] = softmax(logits[best])
    (outputs,) = draw(engine, model, n=SAMPLES, extra=0, top_k=k, seed=5)
    firsts = [ids[0] for ids in ids_of(outputs)]
    assert set(firsts) == set(best)
    assert chi_square(frequencies(firsts, vocab_size), expected, SAMPLES) < 13.9  # 2 degrees, 0.1%
    for ids in ids_of(draw(engine, model, n=20, extra=4, top_k=k, seed=5)[0]):
        for place, token in enumerate(ids):
            assert token in np.argsort(-first_logits(model, ids[:place]))[:k]


@pytest.mark.parametrize("samples", [{"temperature": 0.001}, {"top_k": 1}])
def test_at_temperature_0_and_from_the_single_best_it_is_greedy(engine, samples):
    model, extra, output = tiny(VOCAB, seed=4), 6, []
    while len(output) < len(SOURCE) + extra and EOS not in output:
        output.append(int(first_logits(model, output).argmax()))
    assert ids_of(draw(engine, model, n=3, extra=extra, **samples)[0]) == [output] * 3


@pytest.mark.parametrize("samples", [{"temperature": 1.0}, {"temperature": 2.0}, {"top_k": 3}])
def test_scores_are_those_of_the_whole_model_whatever_the_temperature(engine, samples):
    model, sources = tiny(VOCAB, seed=1, scale=1.5), [SOURCE, [5, 1]]
    for source, outputs in zip(sources, draw(engine, model, sources, n=5, **samples), strict=True):
        expected = scores_of(model, source, padded(ids_of(outputs)), 0.6)
        np.testing.assert_allclose([one.score for one in outputs], expected, rtol=1e-4)
        assert len(outputs) == 5
        for ids in ids_of(outputs):
            assert EOS not in ids[:-1]
            assert ids[-1] == EOS or len(ids) == len(source) + 50


def test_a_seed_gives_the_same_again_whatever_else_is_in_the_batch(engine):
    model, how = tiny(VOCAB, seed=6, scale=0.5), {"extra": 4, "n": 4}
    sources = [[5, 3, 1], [7, 1], [4, 4, 8, 8, 5, 5, 1]]
    found = draw(engine, model, sources, seed=5, lines=(1, 2, 3), **how)[1]
    (alone,) = draw(engine, model, [[7, 1]], seed=5, lines=(2,), **how)
    assert ids_of(found) == ids_of(alone)
    np.testing.assert_allclose([one.score for one in found], [one.score for one in alone], rtol=1e-4)
    for lines, seed in (((2,), 6), ((3,), 5)):
        assert ids_of(draw(engine, model, [[7, 1]], seed=seed, lines=lines, **how)[0]) != ids_of(alone)


def test_samples_of_a_line_differ_and_are_as_they_were_drawn(engine):
    (outputs,) = draw(engine, tiny(VOCAB, seed=6, scale=0.5), n=8, extra=4)
    assert len({tuple(ids) for ids in ids_of(outputs)}) > 4
    scores = [one.score for one in outputs]
    assert scores != sorted(scores, reverse=True)


def test_prefixes_are_kept_and_scored(engine):
    model, prefix = tiny(VOCAB, seed=1, scale=0.5), [7, 7, 2]
    how = {"extra": 4, "n": 6}
    begun, free = draw(engine, model, [SOURCE, [5, 1]], prefixes=[prefix, []], **how)
    assert all(ids[:3] == prefix for ids in ids_of(begun))
    expected = scores_of(model, SOURCE, padded(ids_of(begun)), 0.6)
    np.testing.assert_allclose([one.score for one in begun], expected, rtol=1e-4)
    assert ids_of(free) == ids_of(draw(engine, model, [[5, 1]], lines=(2,), **how)[0])


def test_an_empty_sentence_and_weights_that_are_no_numbers_give_no_output(engine):
    model = tiny(VOCAB)
    none, some = draw(engine, model, [[], [3, 1]], n=2, extra=2)
    assert (len(none), len(some)) == (0, 2)
    model.set_weights([np.full_like(weight, np.nan) for weight in model.get_weights()])
    assert draw(engine, model, [[3, 1]], n=2) == [[]]


@pytest.mark.parametrize(
    "changes", [{}, {"deterministic_attention": True}, {"decoder_self_attention": "ssru"}]
)
def test_trees_are_drawn_by_their_probability_among_trees(engine, changes):
    """For one word and room for one tree too many, all trees can be counted."""
    pieces = ("<pad>", "</s>", "<unk>", "XX▁", "(NP▁", ")NP▁", "(S▁", ")S▁", "a", "▁b")
    model = tiny_models.tiny(len(pieces), 1, TINY.replace(num_hidden_layers=1, **changes), 1.0)
    if model.deterministic_attention:
        model.deterministic_attention.token_flags.assign(token_flags(pieces))
    source, trees = [8, 1], [[4, 3, 5, 1], [6, 3, 7, 1]]  # (NP XX )NP and (S XX )S
    (outputs,) = draw(engine, model, [source], n=2000, extra=2, alpha=0.0, trees=pieces)
    drawn = [trees.index(ids) for ids in ids_of(outputs)]
    logits = logits_of(model, [source] * 2, trees)[:, :, :8]
    taken = np.take_along_axis(log_softmax(logits), np.array(trees)[:, :, None], axis=2)[:, :, 0]
    np.testing.assert_allclose([one.score for one in outputs], taken.sum(1)[drawn], rtol=1e-4)
    expected = softmax(logits[0, 0, [4, 6]])[1]  # whatever opens, there is but one way to go on
    assert abs(np.mean(drawn) - expected) < 3.3 * np.sqrt(expected * (1 - expected) / 2000)
