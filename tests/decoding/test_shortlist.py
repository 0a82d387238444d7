"""Shortlists: the search finds the best outputs made of their tokens, and their file is read as written."""

import functools

import numpy as np
import pytest

from t2t_revival import DecodeHParams, T2TError, Transformer, Translator
from t2t_revival.data.examples import Pairs, Side
from t2t_revival.decoding.translations import FILE_NAME, Translations, coverage, data_warning
from tests.support.search_engines import engines
from tests.support.searches import Shortlisted, search, trimmed
from tests.support.tiny_models import (
    EOS,
    PAD,
    TINY,
    all_outputs,
    length_penalty,
    log_softmax,
    logits_of,
    tiny,
)

UNK = 2
VOCAB = 11
SOURCES = [[3, 9, 4, 1], [5, 1], [7, 8, 1]]
of_engines = pytest.mark.parametrize(
    ("by_line", "engine"),
    [
        pytest.param(by_line, *engine.values, marks=engine.marks)
        for by_line in (False, True)
        for engine in engines("shortlist", *["by_line"] * by_line)
    ],
)
only = functools.partial(Shortlisted, ((PAD,),) * VOCAB)  # the source's tokens and those that all have


def few(seed=0):
    """Random translations of all tokens but PAD."""
    best = np.random.default_rng(seed).integers(3, VOCAB, (VOCAB, 2)).astype(np.int32)
    best[PAD] = PAD
    return Translations(best, np.array([6], np.int32), "sha256")


def allowed_tokens(found, source, prefix=()):
    return {PAD, EOS, UNK, *found.frequent, *source, *prefix, *found.best[source].ravel()}


def translations(best, frequent=()):
    return Translations(np.array(best, np.int32), np.array(frequent, np.int32), "sha256")


def assert_same(found, expected):
    for outputs, others in zip(found, expected, strict=True):
        assert [one.ids for one in outputs] == [one.ids for one in others]
        np.testing.assert_allclose([one.score for one in outputs], [one.score for one in others], rtol=1e-5)


@pytest.mark.nightly
@pytest.mark.slow
@of_engines
def test_a_shortlist_of_the_whole_vocabulary_changes_nothing(engine, by_line):
    model, how = tiny(VOCAB, seed=3), {"engine": engine, "extra": 5, "n": 4}
    shortlist = Shortlisted((tuple(range(VOCAB)),) * VOCAB, by_line=by_line)
    assert_same(search(model, SOURCES, shortlist=shortlist, **how), search(model, SOURCES, **how))


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [[], [5, 3]])
@of_engines
def test_the_best_output_of_a_shortlist_is_found(engine, by_line, prefix):
    """Beside all outputs, with probabilities that are divided among the tokens of the shortlist."""
    vocab_size, source, alpha, limit = 7, [3, 1], 0.6, max(2, len(prefix) + 1) + 2
    model = tiny(vocab_size, seed=1)
    shortlist = Shortlisted(((0,), (0,), (0,), (4,), (0,), (0,), (0,)), by_line=by_line)
    allowed = sorted(allowed_tokens(shortlist.translations, source, prefix))
    assert allowed == [PAD, EOS, UNK, 3, 4, *prefix[:1]]
    outputs = all_outputs(vocab_size, limit)
    outputs = outputs[np.isin(outputs, allowed).all(axis=1)]
    outputs = outputs[(outputs[:, : len(prefix)] == prefix).all(axis=1)]
    logits = logits_of(model, np.repeat([source], len(outputs), axis=0), outputs)
    logits[:, :, [token for token in range(vocab_size) if token not in allowed]] = -np.inf
    log_probs = np.take_along_axis(log_softmax(logits), outputs[:, :, None], axis=2)[:, :, 0]
    lengths = (outputs != PAD).sum(axis=1)
    scores = (log_probs * (outputs != PAD)).sum(axis=1) / length_penalty(lengths, alpha)
    order = np.argsort(-scores)[:3]
    how = {"beams": 64, "alpha": alpha, "extra": 2, "n": 3, "prefixes": [prefix] if prefix else None}
    (found,) = search(model, [source], engine=engine, shortlist=shortlist, **how)
    np.testing.assert_allclose([one.score for one in found], scores[order], rtol=1e-4)
    assert [one.ids for one in found] == [trimmed(row) for row in outputs[order]]


@pytest.mark.nightly
@pytest.mark.slow
@of_engines
def test_a_batch_has_the_tokens_of_its_lines_or_each_line_its_own(engine, by_line):
    model, found = tiny(VOCAB, seed=3), few()
    shortlist = Shortlisted(tuple(map(tuple, found.best.tolist())), (6,), by_line)
    how = {"engine": engine, "shortlist": shortlist, "extra": 6, "n": 3}
    together = search(model, SOURCES, **how)
    alone = [search(model, [source], **how)[0] for source in SOURCES]
    if by_line:
        assert_same(together, alone)
    tokens = [allowed_tokens(found, source) for source in SOURCES]
    for outputs, own in zip(together, tokens, strict=True):
        used = {token for one in outputs for token in one.ids}
        assert used <= (own if by_line else set().union(*tokens))


@pytest.mark.nightly
@pytest.mark.slow
@of_engines
def test_sources_of_another_vocabulary_are_no_candidates(engine, by_line):
    best = ((0,), (0,), (0,), (8,), (4,))
    shortlist = Shortlisted(best, (6,), by_line, target_vocab_size=9)
    model = Transformer(TINY, 5, target_vocab_size=9)
    how = {"engine": engine, "shortlist": shortlist, "beams": 64, "n": 64, "extra": 1}
    found = search(model, [[3, 1], [4, 1]], prefixes=[[5], []], **how)
    own = [{EOS, UNK, 5, 6, 8}, {EOS, UNK, 4, 6}]
    for outputs, tokens in zip(found, own if by_line else [own[0] | own[1]] * 2, strict=True):
        assert {token for one in outputs for token in one.ids} == tokens


@pytest.mark.nightly
@pytest.mark.slow
@of_engines
def test_there_may_be_fewer_tokens_than_hypotheses(engine, by_line):
    how = {"beams": 20, "extra": 0, "n": 20, "shortlist": only(by_line=by_line)}
    (found,) = search(tiny(VOCAB, seed=3), [[3, 1]], engine=engine, **how)
    assert sorted(one.ids for one in found) == [[1], [2, 1], [3, 1]]


def test_trees_have_none():
    tokens = ("<pad>", "<s>", "<unk>", "XX▁", "(S▁", ")S▁", *"abcde")
    with pytest.raises(T2TError, match="here outputs are trees: leave it out"):
        search(tiny(VOCAB), SOURCES, trees=tokens, shortlist=only())


def test_a_translator_without_translations_says_so():
    with pytest.raises(T2TError, match="shortlist=by_line needs translations"):
        Translator(tiny(VOCAB), None, DecodeHParams(shortlist="by_line"))


def test_coverage_is_the_mean_size_and_the_share_of_targets():
    found = translations([[0], [0], [0], [5], [5], [0], [0], [0]], [7])
    sources = Side(np.array([3, 1, 4, 3, 1]), np.array([0, 2, 5]))
    targets = Side(np.array([5, 6, 1, 7, 1]), np.array([0, 3, 5]))
    size, share = coverage(found, Pairs(sources, targets))
    assert size == (6 + 7) / 2  # PAD, EOS, UNK, 7, 5, and the source's own
    assert share == 4 / 5
    found = Translations(np.array([[0], [0], [0], [8], [4]], np.int32), np.array([6], np.int32), "sha256", 9)
    pairs = Pairs(Side(np.array([3, 1]), np.array([0, 2])), Side(np.array([3, 8, 1]), np.array([0, 3])))
    assert coverage(found, pairs) == (5, 2 / 3), "of two vocabularies, the source's own are none"


def test_a_file_is_read_as_it_was_written(tmp_path):
    written = few()
    assert written.save(tmp_path) == tmp_path / FILE_NAME
    read = Translations.load(tmp_path, "sha256")
    np.testing.assert_array_equal(read.best, written.best)
    np.testing.assert_array_equal(read.frequent, written.frequent)
    assert read.digest == written.digest != few(seed=1).digest


@pytest.mark.parametrize(
    "damage", [lambda content: content[:50], lambda content: b"no archive", lambda _: b""]
)
def test_a_corrupt_file_is_refused(tmp_path, damage):
    path = few().save(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(T2TError, match=f"{FILE_NAME}: corrupt; .*t2t-shortlist"):
        Translations.load(tmp_path, "sha256")


def test_another_vocabularys_file_is_refused(tmp_path):
    few().save(tmp_path)
    with pytest.raises(T2TError, match=r"its vocabulary is not that of this model; .*t2t-shortlist"):
        Translations.load(tmp_path, "another")


def test_a_shortlist_of_other_training_data_is_warned_of(tmp_path):
    found = Translations(np.zeros((3, 1), np.int32), np.array([2], np.int32), "sha256", 0, "aaaa")
    found.save(tmp_path)
    stored = Translations.load(tmp_path, "sha256")
    assert stored.learned_from == "aaaa"
    for same in ("aaaa", "bbbb+aaaa", ""):
        assert data_warning(stored, tmp_path, same) == ""
    assert data_warning(stored, tmp_path, "bbbb") == (
        f"warning: {tmp_path}/shortlist.npz was learned from other training data (aaaa) than the model "
        f"(bbbb); to learn it again, run t2t-shortlist --output_dir={tmp_path}"
    )
