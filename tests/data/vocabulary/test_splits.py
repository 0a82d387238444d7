"""Splits of tokens: the merges of hand-made vocabularies, and which pieces of a real one are never split."""

import itertools
import math

import numpy as np
import pytest

from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.splits import LONGEST, Splits, merge_splits
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary

SYMBOLS = ("(NP", "sees")
LINES = [f"the {noun} sees {number} green houses_" for noun in ("dog", "cat") for number in range(20)]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    path = tmp_path_factory.mktemp("vocabulary") / "v.spm"
    return Vocabulary.train(LINES, path, 330, SYMBOLS)


@pytest.fixture(scope="module")
def subwords() -> SubwordVocabulary:
    return SubwordVocabulary.build_from_generator(LINES, 100)


def splits_of(*pieces: str) -> Splits:
    """Ids 0 and 1 are PAD and EOS, and ranks the ids."""
    return merge_splits(("", "", *pieces), range(len(pieces) + 2))


def leaves(splits: Splits, node: int) -> list[int]:
    left, right = splits.parts[node].tolist()
    return leaves(splits, left) + leaves(splits, right) if left else [node]


def test_a_token_is_split_where_its_last_merge_was() -> None:
    splits = splits_of("a", "b", "c", "bc", "ab", "abc", "abcab")
    assert splits.parts.tolist() == [[0, 0]] * 5 + [[3, 4], [2, 3], [2, 5], [7, 6]]
    assert splits.order.tolist() == [-math.inf] * 5 + [5, 6, 7, 8]
    assert splits.steps[8].tolist() == [5, 6, 7, 8]
    assert splits.choices[8].tolist() == [2, 2, 1, 1], "bc and ab, ab and abc, abc, abcab"
    assert splits.steps[7].tolist() == [5, 7, math.inf, math.inf]
    assert splits.choices[7].tolist() == [1, 1, math.inf, math.inf]


def test_equal_merges_are_one_step_with_several_choices() -> None:
    splits = splits_of("a", "b", "ab", "abab")
    assert splits.parts[5].tolist() == [4, 4]
    assert (splits.steps[5].tolist(), splits.choices[5].tolist()) == ([4, 5], [2, 1])


def test_parts_are_merged_before_a_more_frequent_token() -> None:
    splits = merge_splits(["", "", "the", "t", "h", "e", "he"], range(7))
    assert splits.parts[2].tolist() == [3, 6]
    assert splits.order[2] > splits.order[6] == 6
    assert splits.choices[2].tolist() == [1, 1]


def test_a_token_that_no_two_make_has_nodes_that_are_no_tokens() -> None:
    splits = splits_of("a", "b", "c", "d", "abcd", "bc", "abcabcd")
    assert splits.parts[6:].tolist() == [[9, 5], [3, 4], [12, 5], [2, 7], [2, 7], [10, 2], [11, 7]]
    assert splits.order[6:].tolist() == [8, 7, 8, 8, 8, 8, 8], "they are split with their token"
    assert splits.steps[8].tolist() == [7, 8]
    assert splits.choices[[6, 8]].tolist() == [[1, 1], [2, 1]]
    assert leaves(splits, 8) == [2, 3, 4, 2, 3, 4, 5]


@pytest.mark.parametrize("pieces", [("a", "ab"), ("a", "a" * (LONGEST + 1)), ("a", "b", "")])
def test_what_is_not_split(pieces: tuple[str, ...]) -> None:
    splits = splits_of(*pieces)
    assert not splits.parts.any()
    assert np.isneginf(splits.order).all()
    assert np.isinf(splits.steps).all()


def test_sentencepiece(vocabulary: Vocabulary) -> None:
    splits, pieces = vocabulary.splits(), vocabulary.pieces
    first = pieces.index("</s>")
    assert first == 1
    for token, piece in enumerate(pieces):
        special = token < 3 or piece in SYMBOLS or (piece.startswith("<0x") and piece.endswith(">"))
        assert (len(leaves(splits, token)) > 1) == (not special and len(piece) > 1), piece
        if not special:
            assert [pieces[leaf] for leaf in leaves(splits, token)] == list(piece)
    assert len(splits.parts) == len(pieces), "each piece was made from two"
    merged = [token for token, (left, _) in enumerate(splits.parts) if left]
    assert len(pieces[merged[0]]) == 2, "the first merge, of score -0.0, is one"
    assert all(splits.order[part] < splits.order[token] for token in merged for part in splits.parts[token])


def test_subtokens(subwords: SubwordVocabulary) -> None:
    splits = subwords.splits()
    for token, subtoken in enumerate(subwords.subtokens):
        whole = token < 2 or len(subtoken) == 1
        assert "".join(subwords.subtokens[leaf] for leaf in leaves(splits, token)) == subtoken
        assert whole == (len(leaves(splits, token)) == 1)


def test_a_repeated_or_empty_subtoken_is_neither_split_nor_a_part() -> None:
    content = "".join(
        f"'{token}'\n" for token in ("<pad>", "<EOS>", "ab", "", "ab", *"ab\\_u;0123456789<pd>EOS")
    )
    splits = SubwordVocabulary("v.subwords", content.encode()).splits()
    assert [token for token, (left, _) in enumerate(splits.parts) if left] == [4]


def test_choices_are_those_of_the_trees(vocabulary: Vocabulary) -> None:
    """Merges each token step by step, and counts what could have been merged."""
    splits = vocabulary.splits()

    def merges(node: int) -> list[tuple[float, float]]:
        left, right = splits.parts[node].tolist()
        if not left:
            return []
        ready = max(splits.order[left], splits.order[right])
        return [*merges(left), *merges(right), (ready, splits.order[node])]

    for token in range(vocabulary.size):
        tree, done, counts = merges(token), -math.inf, []
        while left := [merge for merge in tree if merge[1] > done]:
            possible = [merge for merge in left if merge[0] <= done]
            counts.append(len(possible))
            done = min(order for _, order in possible)
        padded = itertools.chain(counts, itertools.repeat(math.inf))
        assert splits.choices[token].tolist() == list(itertools.islice(padded, splits.choices.shape[1]))
