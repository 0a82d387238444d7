from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.decoding.batching import make_batches, map_batches


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 60), max_size=80), st.integers(1, 400))
def test_batches_hold_each_line_once_and_no_more_tokens_than_allowed(lengths, batch_size):
    found = list(make_batches(lengths, batch_size))
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        width = max(lengths[index] for index in batch)
        assert len(batch) == 1 or len(batch) * width <= batch_size


def test_batches_follow_the_input_order_in_windows():
    lengths = [16 + index * 7 % 32 for index in range(2000)]
    found = list(make_batches(lengths, 256))
    done, in_order = set(), []
    for batch in found:
        done |= set(batch)
        in_order.append(next((index for index in range(2000) if index not in done), 2000))
    for batches_of_windows in (4, 4 + 16, 4 + 16 + 64):
        lines = batches_of_windows * 256 / 32  # tokens of a batch, of a line
        assert in_order[round(1.3 * batches_of_windows)] >= lines, "padding takes less than 30%"
    padded_tokens = sum(len(batch) * max(lengths[index] for index in batch) for batch in found)
    assert padded_tokens < 1.15 * sum(lengths), "and batches still hold lines of like length"


def test_known_results_leave_the_other_batches_as_they_are():
    lengths = [16 + index % 9 for index in range(400)]
    every, again, seen = [], [], []
    results = map_batches(lambda batch: every.append(batch) or batch, lengths, 400)
    known = {index: results[index] for batch in every[3:6] + every[9:] for index in batch}
    found = map_batches(
        lambda batch: again.append(batch) or batch,
        lengths,
        400,
        completed=known,
        on_results=seen.append,
    )
    assert found == results
    assert again == every[:3] + every[6:9]
    assert [sorted(ready) for ready in seen] == [sorted(batch) for batch in again]
