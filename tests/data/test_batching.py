"""Batches: sizes and order, exact resumption, weights per token of an update, and those of an evaluation."""

import dataclasses
import itertools
import json
import resource
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import HParams, T2TError
from t2t_revival.data.batching import ExampleCounts, IteratorState, TrainingBatches, evaluation_batches
from t2t_revival.training.engines.tensorflow_engine import batch_dataset
from tests.support import copy_shards
from tests.support.copy_shards import split_of
from tests.support.data_kinds import arrays_of, first_batches, open_batches, pairs_of, read_epochs
from tests.support.shard_files import write_shards

HPARAMS = HParams(batch_size=64, max_length=24, min_length_bucket=4, length_bucket_step=1.5)
EOS = 1


def pair(number, source, target):
    """Returns a pair of the given lengths, EOS included, with ids of its own."""
    return [2 + number] * (source - 1) + [EOS], [1002 + number] * (target - 1) + [EOS]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Five shards of 200 pairs with 2 to 30 tokens, some of which are longer than max_length."""
    lengths = np.random.default_rng(1).integers(2, 31, (200, 2))
    pairs = [pair(number, *both) for number, both in enumerate(lengths.tolist())]
    return write_shards(tmp_path_factory.mktemp("shards"), pairs, 5), pairs


def epoch(batches):
    """Returns the batches of the first epoch."""
    elements = enumerate(batches.elements(), start=1)
    return [
        arrays_of(batch)
        for _, batch in itertools.takewhile(lambda made: not batches.position(made[0]).epoch, elements)
    ]


def assert_same(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        for part, other_part in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, other_part)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(chunk=st.integers(5, 300), replicas=st.integers(1, 3), padded=st.booleans())
def test_every_short_enough_example_once_per_epoch(corpus, chunk, replicas, padded):
    shards, pairs = corpus
    short = sorted(p for p in pairs if max(map(len, p)) <= HPARAMS.max_length)
    assert 0 < len(short) < len(pairs)
    how = {"chunk": chunk, "replicas": replicas, "pad_to_bucket": padded}
    first, second = read_epochs(open_batches(shards, HPARAMS, **how), 2)
    assert sorted(first) == sorted(second) == short
    assert first != second or chunk < 40


def test_order_is_a_function_of_seed_and_not_that_of_paths_or_lengths(corpus):
    first = first_batches(open_batches(corpus[0], HPARAMS, seed=5, chunk=60), 60)
    assert_same(first_batches(open_batches(corpus[0][::-1], HPARAMS, seed=5, chunk=60), 60), first)
    other = first_batches(open_batches(corpus[0], HPARAMS, seed=-6, chunk=60), 60)
    assert list(map(pairs_of, first)) != list(map(pairs_of, other))
    widths = [targets.shape[1] for _, targets, _ in epoch(open_batches(corpus[0], HPARAMS))]
    assert abs(np.corrcoef(widths, range(len(widths)))[0, 1]) < 0.3


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(groups=st.integers(0, 60), accumulate=st.integers(1, 3), replicas=st.integers(1, 2))
def test_a_resumed_training_continues_at_the_exact_batch(corpus, groups, accumulate, replicas):
    def batches(start):
        how = {"replicas": replicas, "accumulate": accumulate, "seed": 3, "chunk": 50}
        return open_batches(corpus[0], HPARAMS, start=start, **how)

    consumed = groups * accumulate
    whole = batches(IteratorState())
    expected = first_batches(whole, consumed + 12)[consumed:]
    start = json.loads(json.dumps(dataclasses.asdict(whole.position(consumed))))
    for known in (start, {name: value for name, value in start.items() if name != "cut"}):
        resumed = batches(IteratorState(**known))
        assert resumed.note is None
        assert_same(first_batches(resumed, 12), expected)


@pytest.mark.parametrize(
    ("other", "change"),
    [
        ({"hparams": HPARAMS.replace(batch_size=32)}, "batch_size=64, not 32"),
        ({"hparams": HPARAMS.replace(length_bucket_step=2.0)}, "length_bucket_step=1.5, not 2.0"),
        ({"replicas": 2}, "replicas=1, not 2"),
        ({"seed": 4}, "seed=3, not 4"),
        ({"chunk": 90}, "chunk=100, not 90"),
    ],
)
def test_batches_made_with_other_settings_leave_no_example_out(corpus, other, change):
    """The order of examples is another with another seed or chunk, so that the epoch begins again."""

    def batches(**changes):
        return open_batches(corpus[0], **{"hparams": HPARAMS, "seed": 3, "chunk": 100, **changes})

    whole = batches()
    first_batches(whole, 100)
    (expected,) = read_epochs(batches(), 1)
    second_chunk = [whole.position(number).chunk for number in range(100)].index(1)
    resumed = batches(start=whole.position(second_chunk + 3), **other)
    assert f"batching has changed ({change})" in resumed.note
    of_epoch = "seed" in other or "chunk" in other
    seen = [] if of_epoch else first_batches(batches(), second_chunk)
    (rest,) = read_epochs(resumed, 1)
    assert sorted([*itertools.chain.from_iterable(map(pairs_of, seen)), *rest]) == sorted(expected)
    after = "" if of_epoch else " after its first 100"
    assert resumed.note.endswith(f"examples of this epoch{after} are repeated")


def test_after_the_last_batch_of_an_epoch_or_chunk_no_example_is_repeated(corpus):
    whole = open_batches(corpus[0], HPARAMS, chunk=100)
    last = len(epoch(whole))
    chunk = [whole.position(number).chunk for number in range(last)].index(1)
    other = HPARAMS.replace(batch_size=32)
    for place, expected in ((chunk, 0), (last, 1)):
        resumed = open_batches(corpus[0], other, chunk=100, start=whole.position(place))
        assert resumed.note is None
        first_batches(resumed, 1)
        assert (whole.position(place).epoch, resumed.position(1).epoch) == (0, expected)


def test_tokens_counts_what_was_consumed(corpus):
    batches = open_batches(corpus[0], HPARAMS, replicas=3)
    assert batches.tokens(0) == ExampleCounts(0, 0, 0)
    taken = first_batches(batches, 90)
    sources, targets = (sum((batch[side] > 0).sum() for batch in taken) for side in (0, 1))
    assert batches.tokens(90) == ExampleCounts(targets, sources, sum(len(pairs_of(batch)) for batch in taken))
    json.dumps(batches.tokens(90))


@pytest.mark.slow
def test_a_process_ends_while_batches_are_made_ahead(corpus):
    program = (
        "import sys; from pathlib import Path; from tests.support.data_kinds import open_batches\n"
        "from t2t_revival import HParams\n"
        "from t2t_revival.training.engines.tensorflow_engine import batch_dataset\n"
        "batches = open_batches([Path(shard) for shard in sys.argv[1:]], HParams())\n"
        "iterator = iter(batch_dataset(batches)); next(iterator); sys.exit(3)"
    )
    command = [sys.executable, "-c", program, *map(str, corpus[0])]
    assert subprocess.run(command, timeout=60, check=False).returncode == 3


@pytest.mark.slow
def test_a_chunk_is_freed_before_the_next_is_read(tmp_path):
    shards = write_shards(tmp_path, [pair(number % 500, 60, 60) for number in range(8000)], 2)

    def peak(chunks):
        batches = open_batches(shards, HParams(batch_size=60_000, max_length=64), chunk=2000)
        tracemalloc.start()
        for number, _ in enumerate(batches.elements(), start=1):
            if batches.position(number).chunk == chunks:
                break
        try:
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(3) < 1.3 * peak(1)


class TestEvaluation:
    @pytest.mark.parametrize("fixed_shapes", [False, True])
    def test_every_example_once_whole(self, corpus, fixed_shapes):
        shards, pairs = corpus
        batches = evaluation_batches(split_of(shards), HPARAMS, fixed_shapes=fixed_shapes)
        found = [pair for batch in batches for pair in pairs_of((batch["inputs"], batch["targets"]))]
        assert sorted(found) == sorted(pairs)
        longest = [max(side.shape[1] for side in batch.values()) for batch in batches]
        assert longest == sorted(longest, reverse=True)
        for batch, width in zip(batches, longest, strict=True):
            rows = len(batch["targets"])
            assert rows * width <= HPARAMS.batch_size or rows == 1
            assert {side.dtype for side in batch.values()} == {np.dtype(np.int32)}

    def test_fixed_shapes_are_few(self, corpus):
        batches = evaluation_batches(split_of(corpus[0]), HPARAMS, fixed_shapes=True)
        shapes = {(batch["inputs"].shape, batch["targets"].shape) for batch in batches}
        assert shapes == {((rows, width), (rows, width)) for rows, width in ((2, 32), (4, 16))}


def test_without_a_short_enough_example_the_hparam_is_named(tmp_path):
    batches = open_batches(write_shards(tmp_path, [pair(0, 30, 5), pair(1, 5, 30)], 1), HPARAMS)
    with pytest.raises(T2TError, match="max_length=24"):
        first_batches(batches, 1)
    assert isinstance(batches.error, T2TError)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="is about glibc")
def test_large_blocks_cost_no_new_pages_while_batches_are_read(tmp_path):
    shards = copy_shards.write_shards(tmp_path, 1, 40)
    blocks, size = 20, 8 * 2**20
    batches = iter(batch_dataset(TrainingBatches(split_of(shards), copy_shards.HPARAMS)))
    next(batches)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for number in range(blocks):
        assert len(bytes([number]) * size) == size
    new_pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert new_pages * resource.getpagesize() < 3 * size, "of the twenty blocks that were filled"
