"""Guards: no n-gram twice, tokens that the output has already, and lengths; beside all outputs there are."""

import functools

import numpy as np
import pytest

from tests.support import tiny_models
from tests.support.search_engines import engines
from tests.support.searches import Samples, search, trimmed
from tests.support.tiny_models import EOS, PAD, TINY, all_outputs, length_penalty, log_softmax, logits_of

VOCAB, FEW = 9, 5
SOURCES = [[3, 2, 4, 5, 1], [7, 6, 1]]
LENGTHS = [4, 2]  # without EOS
tiny = functools.partial(tiny_models.tiny, hparams=TINY.replace(num_hidden_layers=1))


def ngrams(output, n):
    words = [token for token in output if token not in (PAD, EOS)]
    return [tuple(words[place : place + n]) for place in range(len(words) - n + 1)]


def repeats(output, n):
    return len({*ngrams(output, n)}) < len(ngrams(output, n))


def meets(
    output, source, no_repeat_ngram_size=0, min_length_ratio=0, max_length_ratio=9, max_length_factor=9, **_
):
    """Reads the rules as a person would: lengths are those without EOS, but of the factor, rounded up."""
    words, length = len(ngrams(output, 1)), len(source) - 1
    least, most = (int(np.ceil(ratio * length)) for ratio in (min_length_ratio, max_length_ratio))
    long = least <= words <= most and words + 1 <= np.ceil(max_length_factor * (length + 1))
    return long and not (no_repeat_ngram_size and repeats(output, no_repeat_ngram_size))


def scores_of(model, source, outputs, alpha, penalty):
    """Scores by logits that are changed for the tokens that an output has already."""
    logits = logits_of(model, np.repeat([source], len(outputs), axis=0), outputs)
    for row, output in zip(logits, outputs, strict=True):
        for place in range(1, len(output)):
            for token in {*output[:place].tolist()} - {PAD}:
                row[place, token] *= 1 / penalty if row[place, token] > 0 else penalty
    taken = np.take_along_axis(log_softmax(logits), outputs[:, :, None], axis=2)[:, :, 0]
    lengths = (outputs != PAD).sum(1)
    return (taken * (outputs != PAD)).sum(1) / length_penalty(lengths, alpha)


@pytest.mark.slow
@pytest.mark.parametrize(
    "guards",
    [
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2},
        {"no_repeat_ngram_size": 3, "min_length_ratio": 1.5},
        {"min_length_ratio": 1.0},
        {"max_length_ratio": 0.7},
        {"max_length_factor": 0.7},
        {"min_length_ratio": 1.0, "max_length_ratio": 1.0},
        {"repetition_penalty": 1.7},
        {"repetition_penalty": 0.6, "max_length_ratio": 1.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("engine", engines("guards"))
def test_a_wide_beam_finds_the_best_of_all_outputs_that_may_be(engine, guards):
    source, extra, alpha = [3, 2, 1], 3, 0.6
    outputs = all_outputs(FEW, len(source) + extra)
    outputs = outputs[[meets(output, source, **guards) for output in outputs]]
    for seed in range(2):
        model = tiny(FEW, seed)
        scores = scores_of(model, source, outputs, alpha, guards.get("repetition_penalty", 1.0))
        order = np.argsort(-scores)[:4]
        how = {"beams": 300, "alpha": alpha, "extra": extra, "n": len(order)}
        (found,) = search(model, [source], engine=engine, guards=guards, **how)
        np.testing.assert_allclose([one.score for one in found], scores[order], rtol=1e-4)
        assert [one.ids for one in found] == [trimmed(row) for row in outputs[order]]


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines("guards", "prefixes"))
def test_prefixes_stay(engine):
    guards = {"no_repeat_ngram_size": 1, "max_length_ratio": 0.5}
    how = {"guards": guards, "extra": 12, "n": 4, "prefixes": [[4, 4, 4], [5]]}
    first, second = search(tiny(VOCAB, seed=4), SOURCES, engine=engine, **how)
    assert all(one.ids[:3] == [4, 4, 4] for one in first)
    assert all(one.ids[:1] == [5] for one in second)


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines("guards", "samples"))
def test_samples_have_guards_too(engine):
    how = {"guards": {"no_repeat_ngram_size": 1, "min_length_ratio": 1.0}, "samples": Samples()}
    found = search(tiny(VOCAB, seed=4, scale=0.5), SOURCES, engine=engine, extra=12, n=20, **how)
    for length, outputs in zip(LENGTHS, found, strict=True):
        assert len(outputs) == 20
        for output in outputs:
            assert not repeats(output.ids, 1)
            assert len(output.ids) - 1 >= length
