"""Pharaoh's format and the alignment error rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data.word_alignment import (
    Alignment,
    ErrorCounts,
    check_links,
    count_links,
    format_pharaoh,
    parse_pharaoh,
)

LINKS = st.frozensets(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12)


@given(LINKS)
def test_what_is_formatted_is_parsed(links):
    assert parse_pharaoh(format_pharaoh(links)) == Alignment(links, links)


def test_links_are_sorted_by_target_word():
    assert format_pharaoh([(3, 0), (0, 2), (1, 0)]) == "1-0 3-0 0-2"


def test_possible_links():
    assert parse_pharaoh(" 0-0 1?2 2p1 ") == Alignment(
        frozenset({(0, 0)}), frozenset({(0, 0), (1, 2), (2, 1)})
    )
    assert parse_pharaoh("") == Alignment(frozenset(), frozenset())


@pytest.mark.parametrize("text", ["0", "0-", "-1-0", "a-b", "0:1", "0-1-2", "0- 1", "٣-٤"])
def test_what_is_no_link_is_named(text):
    with pytest.raises(T2TError, match="is no link such as 0-1"):
        parse_pharaoh(f"0-0 {text}")


def test_words_out_of_range():
    check_links([(1, 2)], "a b\u00a0b", "c d e")
    with pytest.raises(T2TError, match="link 2-0: the source has 2 words, counted from 0"):
        check_links([(2, 0)], "a b\u00a0b", "c d e")
    with pytest.raises(T2TError, match="link 0-3: the target has 3 words"):
        check_links([(0, 3)], "a b", "c d e")


def test_error_rate_by_och_and_ney():
    gold = Alignment(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 2)}))
    counts = ErrorCounts.of(frozenset({(0, 0), (2, 2), (3, 3)}), gold)
    assert counts.error_rate == pytest.approx(1 - (1 + 2) / (3 + 2))  # |A and S| = 1, |A and P| = 2
    assert counts.precision == pytest.approx(2 / 3)
    assert counts.recall == 1 / 2
    assert ErrorCounts().error_rate == 0


@given(st.lists(st.tuples(LINKS, LINKS), max_size=5))
def test_links_of_all_pairs_are_counted_together(pairs):
    counts = count_links([found for found, _ in pairs], [Alignment(gold, gold) for _, gold in pairs])
    both = sum(len(found & gold) for found, gold in pairs)
    sizes = [sum(map(len, side)) for side in zip(*pairs, strict=True)] or [0, 0]
    assert counts == (*sizes, both, both)
    if sum(sizes):
        assert counts.error_rate == pytest.approx(1 - 2 * both / sum(sizes))
