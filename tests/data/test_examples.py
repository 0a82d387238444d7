"""Ids of shards, read by this package's reader and by TensorFlow's."""

import numpy as np
import pytest

from t2t_revival.data import examples, records
from t2t_revival.data.example_format import encode_example
from t2t_revival.errors import T2TError

PAIRS = [([3, 4, 1], [5, 1]), ([300, 70_000, 1], [1]), ([7] * 200 + [1], list(range(1000)))]


@pytest.fixture
def shard(tmp_path):
    path = tmp_path / "p-train-00000-of-00001"
    records.write_shard(path, [encode_example(*pair) for pair in PAIRS])
    return path


def test_pairs_come_in_file_order(shard, monkeypatch):
    monkeypatch.setattr(examples, "BLOCK", 2)
    assert list(examples.read([shard, shard])) == PAIRS * 2


def test_pairs_are_taken_from_each_shard(shard, monkeypatch):
    for block in (1, 2, 1024):
        monkeypatch.setattr(examples, "BLOCK", block)
        for most in (4, 5):
            pairs = examples.read_pairs([shard, shard], most)
            assert pairs.inputs.lengths.tolist() == [3, 3, 3, 3]
            assert pairs.targets.ids.tolist() == [5, 1, 1, 5, 1, 1]
        assert len(examples.read_pairs([shard, shard], 1).inputs.lengths) == 2
        assert len(examples.read_pairs([shard, shard], 1000).inputs.lengths) == 2 * len(PAIRS)
    swapped = examples.read_pairs(records.Shards([shard], swapped=True), 1)
    assert (swapped.inputs.ids.tolist(), swapped.targets.ids.tolist()) == ([5, 1], [3, 4, 1])


def test_an_empty_shard_can_be_read(tmp_path):
    records.write_shard(tmp_path / "empty", [])
    assert list(examples.read([tmp_path / "empty"])) == []


def test_tensorflows_dataset_is_the_same_in_int32(shard):
    data = examples.dataset([shard, shard])
    assert {name: (spec.dtype.name, spec.shape.rank) for name, spec in data.element_spec.items()} == {
        "inputs": ("int32", 1),
        "targets": ("int32", 1),
    }
    for example, (inputs, targets) in zip(data.as_numpy_iterator(), PAIRS * 2, strict=True):
        np.testing.assert_array_equal(example["inputs"], inputs)
        np.testing.assert_array_equal(example["targets"], targets)


def test_a_corrupt_shard_is_named_among_whole_ones(shard, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(shard.read_bytes()[:-3])
    with pytest.raises(T2TError, match=r"bad: truncated or corrupt at byte \d+; to make .* run t2t-datagen"):
        list(examples.read([shard, bad]))


def test_a_foreign_record_is_named(tmp_path):
    records.write_shard(tmp_path / "foreign", [b"no example"])
    with pytest.raises(T2TError, match="foreign: not a shard of examples"):
        list(examples.read([tmp_path / "foreign"]))
