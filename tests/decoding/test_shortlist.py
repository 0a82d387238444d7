"""Shortlists: which tokens they hold, and that the search finds the best outputs made of them."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data.examples import Pairs, Side
from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.constraints import TreeConstraint
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.shortlist import Shortlist
from t2t_revival.decoding.translations import FILE_NAME, Translations, coverage, data_warning
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from tests.support.tiny_models import EOS, PAD, all_outputs, logits_of, tiny, trimmed

UNK = 2
VOCAB = 11
SOURCES = np.array([[3, 9, 4, 1], [5, 1, 0, 0], [0, 0, 0, 0]])


def translations(best, frequent=()):
    return Translations(np.array(best, np.int32), np.array(frequent, np.int32), "sha256")


def few(vocab_size=VOCAB, count=2, seed=0):
    """Random translations of all tokens but PAD."""
    best = np.random.default_rng(seed).integers(3, vocab_size, (vocab_size, count))
    best[PAD] = PAD
    return translations(best, [6])


def expected_tokens(found, source):
    return {PAD, EOS, UNK, *found.frequent, *source, *found.best[source].ravel()}


@settings(max_examples=30, deadline=None)
@given(
    sources=st.lists(st.lists(st.integers(0, VOCAB - 1), min_size=3, max_size=3), min_size=1, max_size=4),
    prefix=st.integers(0, VOCAB - 1),
)
def test_tokens_are_translations_the_source_frequent_ones_and_prefixes(sources, prefix):
    found = few()
    prefixes = np.full((len(sources), 1), prefix, np.int32)
    of_lines = [sorted(expected_tokens(found, source) | {prefix}) for source in sources]
    union = sorted(set().union(*of_lines))
    ids, mask = Shortlist(found, by_line=False).select(tf.constant(sources), tf.constant(prefixes))
    assert ids.numpy().tolist() == union
    assert mask == ()
    ids, mask = Shortlist(found, by_line=True).select(tf.constant(sources), tf.constant(prefixes))
    assert ids.numpy().tolist() == union
    assert [np.array(union)[row].tolist() for row in mask.numpy()[:, 0]] == of_lines


@pytest.mark.parametrize("by_line", [False, True])
def test_sources_of_another_vocabulary_are_no_candidates(by_line):
    found = Translations(np.array([[0], [0], [0], [8], [4]], np.int32), np.array([6], np.int32), "sha256", 9)
    shortlist = Shortlist(found, by_line)
    ids, mask = shortlist.select(tf.constant([[3, 1], [4, 1]]), tf.constant([[5], [0]]))
    assert ids.numpy().tolist() == [PAD, EOS, UNK, 4, 5, 6, 8]
    if by_line:
        assert ids.numpy()[mask.numpy()[1, 0]].tolist() == [PAD, EOS, UNK, 4, 6]
    size, share = coverage(
        found, Pairs(Side(np.array([3, 1]), np.array([0, 2])), Side(np.array([3, 8, 1]), np.array([0, 3])))
    )
    assert (size, share) == (5, 2 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("by_line", [False, True])
def test_a_shortlist_of_the_whole_vocabulary_changes_nothing(by_line):
    model, search = tiny(VOCAB, seed=3)
    shortlist = Shortlist(translations([range(VOCAB)] * VOCAB), by_line)
    found = BeamSearch(model, shortlist=shortlist)(SOURCES, extra_length=5, n=4)
    expected = search(SOURCES, extra_length=5, n=4)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("by_line", [False, True])
def test_the_best_output_of_a_shortlist_is_found(by_line):
    """Beside all outputs, with probabilities that are divided among the tokens of the shortlist."""
    vocab_size, source, limit, alpha = 6, [3, 1], 4, 0.6
    model, _ = tiny(vocab_size, seed=1)
    found = translations([[0], [0], [0], [4], [0], [0]])
    allowed = sorted(expected_tokens(found, source))
    assert allowed == [PAD, EOS, UNK, 3, 4]
    outputs = all_outputs(vocab_size, limit)
    outputs = outputs[np.isin(outputs, allowed).all(axis=1)]
    logits = logits_of(model, np.repeat([source], len(outputs), axis=0), outputs)
    log_probs = logits - np.log(np.exp(logits[:, :, allowed]).sum(axis=2, keepdims=True))
    log_probs = np.take_along_axis(log_probs, outputs[:, :, None], axis=2)[:, :, 0]
    scores = (log_probs * (outputs != PAD)).sum(axis=1) / ((5 + (outputs != PAD).sum(axis=1)) / 6) ** alpha
    order = np.argsort(-scores)[:3]
    ids, given = BeamSearch(model, shortlist=Shortlist(found, by_line))([source], 64, alpha, limit - 2, n=3)
    np.testing.assert_allclose(given[0], scores[order], rtol=1e-4)
    assert [trimmed(row) for row in ids[0]] == [trimmed(row) for row in outputs[order]]


@pytest.mark.slow
def test_a_lines_own_shortlist_makes_it_independent_of_its_batch():
    model, _ = tiny(VOCAB, seed=3)
    search = BeamSearch(model, shortlist=Shortlist(few(), by_line=True))
    ids, scores = search(SOURCES, extra_length=6, n=3)
    for row, source in enumerate(SOURCES):
        alone, score = search([source[source != PAD]], extra_length=6, n=3)
        assert [trimmed(output) for output in ids[row]] == [trimmed(output) for output in alone[0]]
        np.testing.assert_allclose(scores[row], score[0], rtol=1e-5)
        assert {*np.unique(ids[row])} <= expected_tokens(few(), source)


@pytest.mark.slow
@pytest.mark.parametrize("by_line", [False, True])
def test_a_beginning_outside_the_shortlist_is_forced(by_line):
    model, _ = tiny(VOCAB, seed=3)
    found = translations([[PAD]] * VOCAB)
    prefixes = np.array([[8, 10], [7, 0], [0, 0]])
    search = BeamSearch(model, shortlist=Shortlist(found, by_line))
    ids, scores = search(SOURCES, extra_length=5, prefixes=prefixes)
    assert ids.numpy()[0, 0, :2].tolist() == [8, 10]
    assert ids.numpy()[1, 0, 0] == 7
    assert np.isfinite(scores[:2]).all()


@pytest.mark.slow
def test_fewer_tokens_than_hypotheses():
    model, _ = tiny(VOCAB, seed=3)
    search = BeamSearch(model, shortlist=Shortlist(translations([[PAD]] * VOCAB), by_line=True))
    ids, scores = search([[3, 1]], beam_size=20, extra_length=0, n=20)
    assert len({tuple(row) for row in ids[0].numpy()[np.isfinite(scores[0])]}) == 3  # "1", "2 1" and "3 1"
    assert np.isneginf(scores[0, 3:]).all()


def test_trees_have_none():
    model, _ = tiny(VOCAB)
    tokens = ["<pad>", "<s>", "<unk>", "XX▁", "(S▁", ")S▁", *"abcde"]
    with pytest.raises(T2TError, match="here outputs are trees: leave it out"):
        BeamSearch(model, constraint=TreeConstraint(tokens), shortlist=Shortlist(few(), by_line=False))


def test_a_translator_without_translations_says_so():
    with pytest.raises(T2TError, match="shortlist=by_line needs translations"):
        Translator(tiny(VOCAB)[0], None, DecodeHParams(shortlist="by_line"))


def test_coverage_is_the_mean_size_and_the_share_of_targets():
    found = translations([[0], [0], [0], [5], [5], [0], [0], [0]], [7])
    sources = Side(np.array([3, 1, 4, 3, 1]), np.array([0, 2, 5]))
    targets = Side(np.array([5, 6, 1, 7, 1]), np.array([0, 3, 5]))
    size, share = coverage(found, Pairs(sources, targets))
    assert size == (6 + 7) / 2  # PAD, EOS, UNK, 7, 5, and the source's own
    assert share == 4 / 5


def test_a_file_is_read_as_it_was_written(tmp_path):
    written = few()
    assert written.save(tmp_path) == tmp_path / FILE_NAME
    read = Translations.load(tmp_path, "sha256")
    np.testing.assert_array_equal(read.best, written.best)
    np.testing.assert_array_equal(read.frequent, written.frequent)
    assert read.digest == written.digest != few(seed=1).digest


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(
        T2TError, match=f"cannot write {tmp_path}/none/{FILE_NAME}: No such file.*permissions"
    ):
        few().save(tmp_path / "none")


def test_a_missing_file_names_the_command(tmp_path):
    with pytest.raises(
        T2TError, match=f"no {tmp_path}/{FILE_NAME}; .*run t2t-shortlist --output_dir={tmp_path}"
    ):
        Translations.load(tmp_path, "sha256")


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
