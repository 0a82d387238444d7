import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.decoding.lines.batching import BatchPlan, make_batches, map_batches, without


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 400))
def test_batches_hold_each_line_once_and_no_more_tokens_than_allowed(lengths, batch_size):
    found = list(make_batches(lengths, batch_size))
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        width = max(lengths[index] for index in batch)
        assert len(batch) == 1 or len(batch) * width <= batch_size


def test_windows_are_consecutive_and_grow_and_batches_hold_lines_of_like_length():
    lengths = [16 + index * 7 % 32 for index in range(2000)]
    windows = list(BatchPlan(lengths, 256).windows())
    assert [index for window in windows for index in window] == list(range(2000))
    assert [sum(lengths[window.start : window.stop]) // 256 for window in windows[:3]] == [4, 16, 64]
    batches = [batch for window in windows for batch in make_batches(lengths, 256, window)]
    padded_tokens = sum(len(batch) * max(lengths[index] for index in batch) for batch in batches)
    assert padded_tokens < 1.15 * sum(lengths)
    lines = [index // 7 for index in range(2000)]
    assert all(
        window.stop % 7 == 0 or window.stop == 2000 for window in BatchPlan(lengths, 256, lines).windows()
    )


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("skip", [0, 1, 60, 399, 400])
def test_known_results_leave_the_other_batches_as_they_are(parallel, skip):
    plan = BatchPlan([16 + index % 9 for index in range(400)], 400)
    every, again, shown = [], [], []
    whole = list(map_batches(lambda batch: every.append(batch) or batch, plan, parallel))
    rest = map_batches(lambda batch: again.append(batch) or batch, plan, parallel, shown.append, skip)
    assert list(without(skip, rest)) == list(range(400))[skip:]
    assert all(sorted(results) == results == list(window) for window, results in whole)
    begin = min([index for batch in again for index in batch], default=400)
    assert sorted(again) == sorted(batch for batch in every if batch[0] >= begin)
    assert begin <= skip
    assert not shown or (shown[-1].done, shown[-1].share) == (400, 1.0)
