"""Batches: sizes and order, exact resumption, weights per token of an update, corrupt shards."""

import dataclasses
import itertools
import json
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data import batching, examples
from t2t_revival.data.batching import (
    ExampleCounts,
    IteratorState,
    TrainingBatches,
)
from t2t_revival.data.buckets import bucket_batch_sizes, bucket_boundaries
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams

HPARAMS = HParams(batch_size=64, max_length=24, min_length_bucket=4, length_bucket_step=1.5)
EXAMPLES, SHARDS = 200, 5
EOS = 1


def example(inputs: list[int], targets: list[int]) -> bytes:
    lists = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
        for name, ids in (("inputs", inputs), ("targets", targets))
        if ids
    }
    return tf.train.Example(features=tf.train.Features(feature=lists)).SerializeToString()


def write(shard: Path, records: list[bytes]) -> Path:
    with tf.io.TFRecordWriter(str(shard)) as writer:
        for record in records:
            writer.write(record)
    return shard


def pair(number: int, source: int, target: int) -> tuple[list[int], list[int]]:
    """Returns a pair of the given lengths, EOS included, with ids of its own."""
    return [2 + number] * (source - 1) + [EOS], [1002 + number] * (target - 1) + [EOS]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[tuple[list[int], list[int]]]]:
    """Five shards of 200 pairs with 2 to 30 tokens, some of which are longer than max_length."""
    generator = np.random.default_rng(1)
    pairs = [pair(i, *generator.integers(2, 31, 2)) for i in range(EXAMPLES)]
    folder = tmp_path_factory.mktemp("shards")
    shards = [
        write(folder / f"x-train-{k:05d}-of-{SHARDS:05d}", [example(*p) for p in pairs[k::SHARDS]])
        for k in range(SHARDS)
    ]
    return shards, pairs


def numpy(batches: tf.data.Dataset, count: int) -> list[tuple]:
    return list(itertools.islice(batches.as_numpy_iterator(), count))


def take(batches: TrainingBatches, count: int) -> list[tuple]:
    return numpy(batches.dataset(), count)


def pairs_of(batches: list[tuple]) -> list[tuple[list[int], list[int]]]:
    rows = (
        ([i for i in source if i], [i for i in target if i])
        for features, _, _ in batches
        for source, target in zip(features["inputs"].tolist(), features["targets"].tolist(), strict=True)
    )
    return [row for row in rows if row != ([], [])]


def epoch(batches: TrainingBatches, number: int = 0) -> list[tuple]:
    """Returns the batches of an epoch, found by their positions."""
    taken = take(batches, 200)
    return [b for k, b in enumerate(taken, 1) if batches.position(k).epoch == number]


def assert_same(ours: list[tuple], theirs: list[tuple]) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("chunk", [40, 1000])
    def test_every_short_enough_example_once_per_epoch(self, corpus: tuple, chunk: int) -> None:
        shards, pairs = corpus
        short = sorted(p for p in pairs if max(map(len, p)) <= HPARAMS.max_length)
        assert 0 < len(short) < len(pairs)
        for number in (0, 1):
            assert sorted(pairs_of(epoch(TrainingBatches(shards, HPARAMS, chunk=chunk), number))) == short

    def test_elements(self, corpus: tuple) -> None:
        for features, labels, weights in take(TrainingBatches(corpus[0], HPARAMS), 20):
            assert features["inputs"].dtype == features["targets"].dtype == labels.dtype == np.int32
            assert weights.dtype == np.float32
            np.testing.assert_array_equal(labels, features["targets"])
            np.testing.assert_array_equal(weights > 0, labels != 0)

    @pytest.mark.parametrize("replicas", [1, 3])
    def test_batches_are_within_batch_size_and_divisible(self, corpus: tuple, replicas: int) -> None:
        batches = epoch(TrainingBatches(corpus[0], HPARAMS, replicas=replicas, chunk=1000))
        sizes = []
        for features, labels, _ in batches:
            rows, width = labels.shape[0], max(labels.shape[1], features["inputs"].shape[1])
            assert rows % replicas == 0
            assert rows // replicas * width <= HPARAMS.batch_size or rows == replicas
            sizes.append(rows * width)
        assert np.mean(sizes) > 0.7 * replicas * HPARAMS.batch_size

    def test_only_one_batch_of_a_chunk_has_rows_of_padding_alone(self, corpus: tuple) -> None:
        batches = epoch(TrainingBatches(corpus[0], HPARAMS, replicas=7, chunk=1000))
        padded = [labels for _, labels, _ in batches if not labels.any(axis=1).all()]
        assert len(padded) == 1
        assert 0 < (padded[0].any(axis=1) == 0).sum() < 7

    def test_pad_to_bucket_has_as_many_shapes_as_buckets(self, corpus: tuple) -> None:
        bounds = bucket_boundaries(24, 4, 1.5)
        allowed = {
            (2 * n, b) for n, b in zip(bucket_batch_sizes(bounds, HPARAMS.batch_size), bounds, strict=True)
        }
        batches = epoch(TrainingBatches(corpus[0], HPARAMS, replicas=2, pad_to_bucket=True))
        shapes = {side.shape for features, _, _ in batches for side in features.values()}
        assert shapes <= allowed
        assert len(shapes) > 2

    def test_order_is_a_function_of_seed_and_epoch(self, corpus: tuple) -> None:
        first = take(TrainingBatches(corpus[0], HPARAMS, seed=5, chunk=60), 60)
        assert_same(take(TrainingBatches(corpus[0][::-1], HPARAMS, seed=5, chunk=60), 60), first)
        batches = TrainingBatches(corpus[0], HPARAMS, seed=5, chunk=60)
        assert pairs_of(epoch(batches, 0)) != pairs_of(epoch(batches, 1))
        other = TrainingBatches(corpus[0], HPARAMS, seed=-6, chunk=60)
        assert pairs_of(epoch(batches, 0)) != pairs_of(epoch(other, 0))

    def test_order_of_batches_is_not_that_of_lengths(self, corpus: tuple) -> None:
        widths = [labels.shape[1] for _, labels, _ in epoch(TrainingBatches(corpus[0], HPARAMS))]
        assert widths not in (sorted(widths), sorted(widths, reverse=True))

    @settings(max_examples=12, deadline=None)
    @given(groups=st.integers(0, 60), accumulate=st.integers(1, 3), replicas=st.integers(1, 2))
    def test_a_resumed_training_continues_at_the_exact_batch(
        self, corpus: tuple, groups: int, accumulate: int, replicas: int
    ) -> None:
        def batches(start: IteratorState) -> TrainingBatches:
            return TrainingBatches(
                corpus[0], HPARAMS, replicas=replicas, accumulate=accumulate, seed=3, start=start, chunk=50
            )

        consumed = groups * accumulate
        whole = batches(IteratorState())
        expected = take(whole, consumed + 12)[consumed:]
        start = IteratorState(**json.loads(json.dumps(dataclasses.asdict(whole.position(consumed)))))
        assert_same(take(batches(start), 12), expected)

    @pytest.mark.parametrize(
        ("other", "change"),
        [
            ({"hparams": dataclasses.replace(HPARAMS, batch_size=32)}, "batch_size=32 instead of 64"),
            (
                {"hparams": dataclasses.replace(HPARAMS, length_bucket_step=2.0)},
                "length_bucket_step=2.0 instead of 1.5",
            ),
            ({"replicas": 2}, "replicas=2 instead of 1"),
            ({"seed": 4}, "seed=4 instead of 3"),
        ],
    )
    def test_batches_made_with_other_settings_leave_no_example_out(
        self, corpus: tuple, other: dict, change: str
    ) -> None:
        def batches(**changes: object) -> TrainingBatches:
            return TrainingBatches(corpus[0], **{"hparams": HPARAMS, "seed": 3, "chunk": 100, **changes})

        whole = batches()
        expected = sorted(pairs_of(epoch(whole)))
        second_chunk = [whole.position(n).chunk for n in range(100)].index(1)
        stop = second_chunk + 3
        resumed = batches(start=whole.position(stop), **other)
        assert resumed.note is not None
        assert change in resumed.note
        known = 0 if "seed" in other else second_chunk
        seen = pairs_of(take(batches(), known))
        assert sorted(seen + pairs_of(epoch(resumed))) == expected
        assert resumed.note.endswith(
            "examples of this epoch are repeated" if "seed" in other else "after its first 100 are repeated"
        )

    def test_after_the_last_batch_of_an_epoch_no_example_is_repeated(self, corpus: tuple) -> None:
        whole = TrainingBatches(corpus[0], HPARAMS)
        last = len(epoch(whole))
        other = dataclasses.replace(HPARAMS, batch_size=32)
        resumed = TrainingBatches(corpus[0], other, start=whole.position(last))
        assert resumed.note is None
        take(resumed, 1)
        assert (whole.position(last).epoch, resumed.position(1).epoch) == (0, 1)

    def test_a_position_without_settings_is_used_unchanged(self, corpus: tuple) -> None:
        whole = TrainingBatches(corpus[0], HPARAMS, chunk=50)
        expected = take(whole, 10)[5:]
        old = {"epoch": 0, "chunk": whole.position(5).chunk, "batch": whole.position(5).batch}
        resumed = TrainingBatches(corpus[0], HPARAMS, chunk=50, start=IteratorState(**old))
        assert resumed.note is None
        assert_same(take(resumed, 5), expected)

    @pytest.mark.parametrize("accumulate", [1, 4])
    def test_weights_of_an_update_sum_to_its_micro_batches(self, corpus: tuple, accumulate: int) -> None:
        weights = [w for _, _, w in take(TrainingBatches(corpus[0], HPARAMS, accumulate=accumulate), 120)]
        for begin in range(0, len(weights), accumulate):
            group = weights[begin : begin + accumulate]
            assert sum(w.sum(dtype=np.float64) for w in group) == pytest.approx(accumulate, rel=1e-5)
            assert len(np.unique(np.concatenate([w[w > 0] for w in group]))) == 1

    def test_tokens_counts_what_was_consumed(self, corpus: tuple) -> None:
        batches = TrainingBatches(corpus[0], HPARAMS, replicas=3)
        assert batches.tokens(0) == ExampleCounts(0, 0, 0)
        taken = take(batches, 90)
        targets = sum((labels > 0).sum() for _, labels, _ in taken)
        sources = sum((features["inputs"] > 0).sum() for features, _, _ in taken)
        rows = sum(labels.any(axis=1).sum() for _, labels, _ in taken)
        assert batches.tokens(90) == ExampleCounts(targets, sources, rows)
        json.dumps(batches.tokens(90))

    def test_positions_out_of_reach_are_refused(self, corpus: tuple) -> None:
        start = IteratorState(epoch=1, chunk=2)
        batches = TrainingBatches(corpus[0], HPARAMS, accumulate=2, start=start)
        assert dataclasses.replace(batches.position(0), cut="") == start
        take(batches, 4)
        with pytest.raises(ValueError, match="within a group of 2"):
            batches.position(3)
        with pytest.raises(ValueError, match="not yet produced"):
            batches.tokens(100_000)

    @pytest.mark.slow
    def test_a_process_ends_while_batches_are_made_ahead(self, corpus: tuple) -> None:
        program = (
            "import sys; from pathlib import Path; from t2t_revival.data.batching import TrainingBatches\n"
            "from t2t_revival.hparams import HParams\n"
            "batches = TrainingBatches([Path(shard) for shard in sys.argv[1:]], HParams())\n"
            "iterator = iter(batches.dataset()); next(iterator); sys.exit(3)"
        )
        command = [sys.executable, "-c", program, *map(str, corpus[0])]
        assert subprocess.run(command, timeout=60, check=False).returncode == 3


# Ids from 2 on; those of even numbers are of two characters, which come first.


class TestBadShards:
    def error_of(self, shards: list[Path], hparams: HParams = HPARAMS) -> str:
        batches = TrainingBatches(shards, hparams)
        with pytest.raises(tf.errors.OpError):
            take(batches, 1000)
        assert isinstance(batches.error, T2TError)
        assert "\n" not in str(batches.error)
        return str(batches.error)

    @pytest.mark.parametrize("kept", [5, 12, 40])
    def test_truncated_shard_names_file_and_byte(self, corpus: tuple, tmp_path: Path, kept: int) -> None:
        records = [example(*p) for p in corpus[1][:10]]
        whole = write(tmp_path / "whole", records[:9]).stat().st_size
        cut = write(tmp_path / "cut", records)
        cut.write_bytes(cut.read_bytes()[: whole + kept])
        message = self.error_of([*corpus[0], cut])
        assert str(cut) in message
        assert f"byte {whole};" in message

    def test_flipped_bit_names_file_and_byte(self, corpus: tuple, tmp_path: Path) -> None:
        records = [example(*p) for p in corpus[1][:10]]
        begin = write(tmp_path / "begin", records[:3]).stat().st_size
        flipped = write(tmp_path / "flipped", records)
        content = bytearray(flipped.read_bytes())
        content[begin + 15] ^= 4
        flipped.write_bytes(content)
        assert f"{flipped}: truncated or corrupt at byte {begin};" in self.error_of([flipped])

    def test_no_shard_is_short_enough(self, tmp_path: Path) -> None:
        shard = write(tmp_path / "long", [example(*pair(0, 30, 5)), example(*pair(1, 5, 30))])
        assert "max_length=24" in self.error_of([shard])

    def test_missing_shard(self, tmp_path: Path) -> None:
        assert str(tmp_path / "none") in self.error_of([tmp_path / "none"])

    def test_no_shards(self) -> None:
        with pytest.raises(T2TError, match="t2t-datagen"):
            TrainingBatches([], HPARAMS)

    @pytest.mark.parametrize(
        ("record", "said"),
        [(b"no example", "not a shard of examples"), (example([5, EOS], []), "has no targets")],
    )
    def test_records_of_another_kind(self, tmp_path: Path, record: bytes, said: str) -> None:
        shard = write(tmp_path / "other", [example(*pair(0, 3, 3)), record])
        message = self.error_of([shard])
        assert str(shard) in message
        assert said in message


def test_a_chunk_is_freed_before_the_next_is_read(corpus, monkeypatch) -> None:
    held: list[weakref.ref] = []

    def watched(records: list) -> examples.Pairs:
        assert all(ids() is None for ids in held), "ids of the chunk before"
        pairs = examples.parse(records)
        held.append(weakref.ref(pairs.inputs.ids))
        read.append(records)
        return pairs

    read: list[list] = []
    monkeypatch.setattr(batching, "parse", watched)
    batches = TrainingBatches(corpus[0], HPARAMS, chunk=50).elements()
    while len(held) < 6:
        next(batches)
    assert not any(read[:-1]), "records of the chunks before"
    assert not read[-1], "records of what is in arrays by now"
