"""Length buckets: their bounds and the sizes of their batches."""

import pytest

from t2t_revival.data.buckets import bucket_batch_sizes, bucket_boundaries, fixed_width


def test_boundaries_are_t2ts() -> None:
    # x -> max(x + 1, int(1.1 x)) from 8, worked out by hand.
    by_hand = [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 30, 33, 36, 39, 42, 46]
    assert bucket_boundaries(50, 8, 1.1) == [*by_hand, 50]


@pytest.mark.parametrize(
    ("max_length", "minimum", "step", "bounds"),
    [(30, 4, 2.0, [4, 8, 16, 30]), (16, 4, 2.0, [4, 8, 16]), (8, 8, 1.1, [8]), (5, 8, 1.1, [5])],
)
def test_max_length_is_the_last_bound(max_length: int, minimum: int, step: float, bounds: list[int]) -> None:
    assert bucket_boundaries(max_length, minimum, step) == bounds


def test_batch_sizes_hold_batch_size_tokens_or_one_example() -> None:
    assert bucket_batch_sizes([4, 8, 30, 64, 100], 64) == [16, 8, 2, 1, 1]


@pytest.mark.parametrize(("length", "width"), [(1, 16), (16, 16), (17, 32), (32, 32), (33, 64), (300, 512)])
def test_fixed_widths_are_powers_of_two(length: int, width: int) -> None:
    assert fixed_width(length) == width
