"""Shards are files that TensorFlow reads and writes; what is wrong in one is named with its byte."""

import struct

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data.batching import evaluation_batches
from t2t_revival.data.examples import read_pairs
from tests.support.copy_shards import split_of
from tests.support.data_kinds import HPARAMS, KINDS, open_problem, pairs_of
from tests.support.shard_files import example, write_records, write_shards

IDS = st.lists(st.integers(2, 2**31 - 1), max_size=5).map(lambda ids: [*ids, 1])
OTHERS = {
    "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"b" * 200])),
    "alignment": tf.train.Feature(int64_list=tf.train.Int64List(value=[0, 0])),
    "weight": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5])),
}
PAIRS = [([3, 4, 1], [5, 1]), ([300, 70_000, 1], [1]), ([7] * 200 + [1], [*range(2, 1000), 1])]


def read(*shards, swapped=False):
    batches = evaluation_batches(split_of(list(shards), swapped), HPARAMS)
    return sorted(pair for batch in batches for pair in pairs_of((batch["inputs"], batch["targets"])))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(IDS, IDS, st.sampled_from(["", *OTHERS])), min_size=1, max_size=20))
def test_what_tensorflow_writes_is_read(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("shards") / "any"
    write_records(path, [example(*pair, **({key: OTHERS[key]} if key else {})) for *pair, key in rows])
    pairs = sorted((inputs, targets) for inputs, targets, _ in rows)
    assert read(path) == pairs
    assert read(path, swapped=True) == sorted((targets, inputs) for inputs, targets in pairs)


@pytest.mark.parametrize(
    ("kind", "features"), [("subwords", set()), ("weighted", {"weight"}), ("aligned", {"alignment"})]
)
def test_tensorflow_reads_what_is_generated(sources, tmp_path, kind, features):
    problem = open_problem(KINDS[kind], sources)
    problem.generate_data(tmp_path)
    shards = problem.open(tmp_path).split("train").paths
    records = [
        tf.train.Example.FromString(record.numpy()).features.feature
        for record in tf.data.TFRecordDataset(list(map(str, shards)))
    ]
    assert {key for record in records for key in record} == {"inputs", "targets"} | features
    vocabulary = problem.open(tmp_path).vocabularies.inputs
    sides = [[list(record[side].int64_list.value) for record in records] for side in ("inputs", "targets")]
    assert all(ids[-1] == 1 and 1 not in ids[:-1] for side in sides for ids in side)
    texts = [tuple(map(vocabulary.decode, pair)) for pair in zip(*sides, strict=True)]
    assert texts == list(problem.open(tmp_path).text("train"))
    content = b"".join(path.read_bytes() for path in shards)
    rewritten = write_records(
        tmp_path / "theirs", [record.numpy() for record in tf.data.TFRecordDataset(list(map(str, shards)))]
    )
    assert rewritten.read_bytes() == content


def test_pairs_are_taken_from_each_shard(tmp_path):
    shards = write_shards(tmp_path, [([number, 1], [1]) for number in range(3, 33)], 3)
    for most, taken in ((1, 3), (7, 6), (29, 27), (1000, 30)):
        pairs = read_pairs(split_of(shards), most)
        assert len(pairs.inputs.lengths) == taken
        assert all(
            sum(ids % 3 == shard for ids in pairs.inputs.ids if ids > 2) == taken // 3 for shard in range(3)
        )
    swapped = read_pairs(split_of(shards, swapped=True), 1)
    np.testing.assert_array_equal(swapped.targets.ids, read_pairs(split_of(shards), 1).inputs.ids)


def begins(content):
    """Returns the offsets at which records begin and the file ends."""
    at = [0]
    while at[-1] < len(content):
        at.append(at[-1] + 16 + struct.unpack_from("<Q", content, at[-1])[0])
    return at


def test_a_cut_or_a_flipped_bit_anywhere_is_named_with_shard_and_byte(tmp_path):
    whole = write_shards(tmp_path, PAIRS, 1, "whole")
    shard = write_records(tmp_path / "bad", [example(*pair) for pair in PAIRS[:2]])
    content = shard.read_bytes()
    first, second, end = begins(content)
    for at in range(end):
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        byte = first if at < second else second
        for harmed in (bytes(flipped), content[:at] if at not in (first, second) else flipped):
            shard.write_bytes(harmed)
            with pytest.raises(T2TError, match=rf"bad: truncated or corrupt at byte {byte}; to make"):
                read(*whole, shard)


def test_a_shard_that_is_not_there_or_not_a_file_is_named(tmp_path):
    with pytest.raises(T2TError, match=r"none: cannot be read \(No such file or directory\)"):
        read(tmp_path / "none")
    with pytest.raises(T2TError, match=rf"{tmp_path}: cannot be read \(Is a directory\)"):
        read(tmp_path)
