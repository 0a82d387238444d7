"""Shares of source tokens in the target tokens of a batch."""

import numpy as np

from t2t_revival.data.examples import Pairs, Side
from t2t_revival.data.token_alignment import alignment_shares


def side(*rows):
    flat = np.array([token for row in rows for token in row], np.int32)
    return Side(flat, np.cumsum([0, *map(len, rows)]))


PAIRS = Pairs(side([5, 6, 1], [5, 1]), side([7, 8, 9, 1], [7, 1]))
LINKS = side([0, 0, 0, 1, 1, 1, 2, 2], [])  # target 0 with both words, 1 with the second, 2 with the end


def test_linked_tokens_have_equal_shares():
    shares = alignment_shares(LINKS, PAIRS, np.array([1, 0]), (3, 4, 3), swapped=False)
    assert shares.dtype == np.float32
    np.testing.assert_array_equal(shares[0], np.zeros((4, 3)))
    np.testing.assert_array_equal(shares[1], [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(shares[2], np.zeros((4, 3)))  # a row that fills the batch


def test_swapped_sides():
    shares = alignment_shares(LINKS, PAIRS.reversed(), np.array([0]), (1, 3, 4), swapped=True)
    np.testing.assert_array_equal(shares[0], [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 0]])
