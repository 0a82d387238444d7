"""The file of shortlists is read as written, and refused where it does not fit; test_unknown.py decodes."""

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.addons.shortlist import FILE_NAME, Translations, coverage
from t2t_revival.data.examples import Pairs, Side
from tests.support.tiny_models import PAD

VOCAB = 11


def few(seed=0):
    """Random translations of all tokens but PAD."""
    best = np.random.default_rng(seed).integers(3, VOCAB, (VOCAB, 2)).astype(np.int32)
    best[PAD] = PAD
    return Translations(best, np.array([6], np.int32), "sha256")


def translations(best, frequent=()):
    return Translations(np.array(best, np.int32), np.array(frequent, np.int32), "sha256")


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
        assert stored.data_warning(tmp_path, same) == ""
    assert stored.data_warning(tmp_path, "bbbb") == (
        f"warning: {tmp_path}/shortlist.npz was learned from other training data (aaaa) than the model "
        f"(bbbb); to learn it again, run t2t-shortlist --output_dir={tmp_path}"
    )
