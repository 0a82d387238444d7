import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding.beam_search import BeamSearch
from t2t_revival.decoding.constraints import TreeConstraint, max_output_lengths
from t2t_revival.errors import T2TError
from tests.support.tiny_models import all_outputs, scores_of, tiny, trimmed

VOCAB, SOURCE, EXTRA = 5, [3, 2, 1], 2


@pytest.mark.parametrize("prefix", [[2], [3, 2], [4, 4, 4], [2, 3, 4, 2]])
@pytest.mark.parametrize("alpha", [0.6, 0.0, -1.0])
def test_the_outputs_are_the_best_of_all_that_begin_so(prefix, alpha):
    outputs = all_outputs(VOCAB, max(len(SOURCE), len(prefix) + 1) + EXTRA)
    outputs = outputs[(outputs[:, : len(prefix)] == prefix).all(1)]
    for seed in range(3):
        model, search = tiny(VOCAB, seed)
        expected = scores_of(model, SOURCE, outputs, alpha)
        order = np.argsort(-expected)[:4]
        ids, scores = search([SOURCE], 64, alpha, EXTRA, 4, [prefix])
        np.testing.assert_allclose(scores[0], expected[order], rtol=1e-4)
        assert [trimmed(row) for row in ids[0]] == [trimmed(row) for row in outputs[order]]


@pytest.mark.parametrize("beams", [1, 3])
def test_sentences_have_prefixes_of_their_own_or_none(beams):
    _, search = tiny(9, seed=2, scale=0.5)
    sources = [[3, 2, 4, 1], [5, 1], [6, 7, 8, 2, 1], [4, 8, 1], [6, 1]]
    prefixes = [[7, 7, 2], [], [2], [8, 3, 2, 5, 5, 5, 5], []]
    rows, begun = np.zeros((5, 5), np.int32), np.zeros((5, 7), np.int32)
    for table, lists in ((rows, sources), (begun, prefixes)):
        for row, ids in zip(table, lists, strict=True):
            row[: len(ids)] = ids
    ids, scores = search(rows, beams, 0.6, 3, beams, begun)
    for index, (source, prefix) in enumerate(zip(sources, prefixes, strict=True)):
        alone = search([source], beams, 0.6, 3, beams, [prefix] if prefix else None)
        np.testing.assert_allclose(scores[index], alone[1][0], rtol=1e-4)
        for row, other in zip(ids[index], alone[0][0], strict=True):
            assert trimmed(row) == trimmed(other)
            assert trimmed(row)[: len(prefix)] == prefix


def test_empty_prefixes_change_nothing():
    _, search = tiny(11, seed=5)
    rows = np.array([[5, 1, 0], [3, 4, 1], [0, 0, 0]])
    ids, scores = search(rows, 3, 0.6, 4, 2)
    for width in (0, 3):
        again, same = search(rows, 3, 0.6, 4, 2, np.zeros((3, width), np.int32))
        np.testing.assert_array_equal(ids, again)
        np.testing.assert_allclose(scores, same, rtol=1e-6)


def test_there_is_room_behind_a_prefix_as_behind_a_source():
    sources, prefixes = [[3, 2, 1], [3, 1, 0], [0, 0, 0]], [[2, 0, 0], [2, 2, 2], [2, 0, 0]]
    assert max_output_lengths(np.array(sources), 5).numpy()[:, 0].tolist() == [3 + 5, 2 + 5, 0]
    lengths = max_output_lengths(np.array(sources), 5, np.array(prefixes))
    assert lengths.numpy()[:, 0].tolist() == [3 + 5, 4 + 5, 0]


def test_trees_have_no_prefix():
    pieces = ["<pad>", "</s>", "<unk>", "XX▁", "(S▁", ")S▁", "a"]
    search = BeamSearch(tiny(len(pieces))[0], constraint=TreeConstraint(pieces))
    with pytest.raises(T2TError, match="trees cannot begin with a text"):
        search([[6, 1]], prefixes=[[4]])


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory, subwords_file):
    text = [f"the dog sees {number} houses ." for number in range(9)]
    learned = Vocabulary.train(text, tmp_path_factory.mktemp("vocabulary") / "v.spm", 300)
    return learned, SubwordVocabulary(subwords_file)


@settings(deadline=None)
@given(
    prefix=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=9),
    following=st.lists(st.integers(0, 10**6), max_size=6),
)
def test_whatever_tokens_follow_those_of_a_text_the_whole_begins_with_it(vocabularies, prefix, following):
    for vocabulary in vocabularies:
        ids = vocabulary.encode(prefix) + [id % vocabulary.size for id in following]
        assert vocabulary.decode(ids).startswith(prefix)
