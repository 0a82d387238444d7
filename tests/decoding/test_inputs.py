import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.decoding.inputs import LEAST_BATCH, LEAST_TOKENS, batches, in_batches, padded


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 400))
def test_batches_hold_each_line_once_and_no_more_tokens_than_allowed(lengths, batch_size):
    found = list(batches(range(len(lengths)), lengths, batch_size))
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        width = max(max(lengths[index] for index in batch), LEAST_TOKENS)
        assert len(batch) == 1 or len(batch) * width <= batch_size


def test_each_result_is_that_of_its_input_whatever_the_streams():
    lengths = [20 + index % 7 for index in range(300)]
    wanted = [index for index in range(300) if index % 5]
    for streams in (1, 3):
        seen = []
        found = in_batches(
            lambda batch: [-index for index in batch], wanted, lengths, 400, streams, seen.append
        )
        assert sorted(found) == [(index, -index) for index in wanted]
        assert (seen[-1].done, seen[-1].total, seen[-1].share) == (300, 300, 1.0)
        assert len(seen) > 10


def test_all_streams_get_a_batch_where_there_is_enough_for_them():
    sizes = []
    list(in_batches(lambda batch: sizes.append(len(batch)) or batch, range(64), [16] * 64, 10**6, 4))
    assert sizes == [LEAST_BATCH // 16] * 4


def test_rows_are_padded_to_the_longest():
    np.testing.assert_array_equal(padded([[5, 1], [], [7]]), [[5, 1], [0, 0], [7, 0]])
