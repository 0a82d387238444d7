import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data import records
from t2t_revival.data.example_format import encode_example
from t2t_revival.errors import T2TError

EXAMPLES = [([3, 4, 1], [5, 1]), ([300, 70_000, 1], [1]), ([7] * 200 + [1], list(range(1000)))]


@pytest.fixture
def shard(tmp_path):
    path = tmp_path / "p-train-00000-of-00001"
    records.write_shard(path, [encode_example(*example) for example in EXAMPLES])
    return path


@settings(max_examples=50, deadline=None)
@given(*[st.lists(st.integers(0, 2**40), max_size=30)] * 2)
def test_examples_are_tf_train_examples(inputs, targets):
    import tensorflow as tf

    example = tf.train.Example.FromString(encode_example(inputs, targets))
    features = example.features.feature
    assert set(features) == {"inputs", "targets"}
    assert list(features["inputs"].int64_list.value) == inputs
    assert list(features["targets"].int64_list.value) == targets


def test_tensorflow_writes_the_same_file(shard, tmp_path):
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for example in EXAMPLES:
            writer.write(encode_example(*example))
    assert (tmp_path / "theirs").read_bytes() == shard.read_bytes()


def test_blocks_hold_all_examples_in_order(shard):
    serialised = [encode_example(*example) for example in EXAMPLES]
    assert list(records.read_shard(shard, 2)) == [serialised[:2], serialised[2:]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=20))
def test_any_content_comes_back(tmp_path_factory, blobs):
    path = tmp_path_factory.mktemp("shards") / "any"
    records.write_shard(path, blobs)
    assert [record for block in records.read_shard(path, 7) for record in block] == blobs


def begins(content):
    """Returns the offsets at which records begin and the file ends."""
    at = [0]
    while at[-1] < len(content):
        at.append(at[-1] + 16 + struct.unpack_from("<Q", content, at[-1])[0])
    return at


def test_a_cut_anywhere_is_named_with_shard_and_byte(tmp_path):
    path = tmp_path / "cut"
    records.write_shard(path, [encode_example([3, 1], [4, 1]), encode_example([5, 1], [1])])
    content = path.read_bytes()
    first, second, end = begins(content)
    for kept in set(range(1, end)) - {second}:
        path.write_bytes(content[:kept])
        byte = first if kept < second else second
        with pytest.raises(
            T2TError,
            match=rf"cut: truncated or corrupt at byte {byte}; to make .* run t2t-datagen ",
        ):
            list(records.read_shard(path, 10))


def test_a_flipped_bit_anywhere_is_named_with_shard_and_byte(shard):
    content = shard.read_bytes()
    _, second, third, _ = begins(content)
    for at in range(second, third):
        flipped = bytearray(content)
        flipped[at] ^= 1 << at % 8
        shard.write_bytes(flipped)
        with pytest.raises(T2TError, match=rf"{shard.name}: truncated or corrupt at byte {second};"):
            list(records.read_shard(shard, 10))


def test_records_before_a_corrupt_one_are_read(shard):
    shard.write_bytes(shard.read_bytes()[:-3])
    blocks = records.read_shard(shard, 1)
    assert [next(blocks), next(blocks)] == [[encode_example(*example)] for example in EXAMPLES[:2]]
    with pytest.raises(T2TError, match="corrupt"):
        next(blocks)


def test_a_shard_that_is_not_there_or_not_a_file_is_named(tmp_path):
    with pytest.raises(T2TError, match=r"none: no such shard; to make .* run t2t-datagen"):
        next(records.read_shard(tmp_path / "none", 1))
    with pytest.raises(T2TError, match=rf"{tmp_path}: cannot be read \(Is a directory\)"):
        next(records.read_shard(tmp_path, 1))


def test_shard_names_are_t2ts():
    assert records.shard_name("translate_ende", "train", 0, 100) == "translate_ende-train-00000-of-00100"


def make(folder, *names):
    for name in names:
        (folder / name).touch()


def test_shards_come_in_order_and_only_the_problems_own(tmp_path):
    names = [records.shard_name("p", "train", index, 11) for index in range(11)]
    make(tmp_path, *names, "p-dev-00000-of-00001", "p_x-train-00000-of-00002", "p-train-00000-of-00011.bak")
    assert [path.name for path in records.shard_paths(tmp_path, "p", "train")] == names


def test_a_missing_shard_is_named(tmp_path):
    make(tmp_path, "p-train-00000-of-00003", "p-train-00002-of-00003")
    with pytest.raises(T2TError, match="shard p-train-00001-of-00003 is missing"):
        records.shard_paths(tmp_path, "p", "train")


def test_no_shard_at_all_is_an_error(tmp_path):
    with pytest.raises(T2TError, match="no shards p-train"):
        records.shard_paths(tmp_path, "p", "train")


def test_mixed_sets_of_shards_are_an_error(tmp_path):
    make(tmp_path, "p-train-00000-of-00001", "p-train-00000-of-00002")
    with pytest.raises(T2TError, match="-of-00001 and -of-00002"):
        records.shard_paths(tmp_path, "p", "train")


def test_leftovers_of_a_problem_are_removed_and_no_others(tmp_path):
    mine = [".p-train-00000-of-00010.tmp", ".p.meta.json.tmp", ".vocab.p.100.spm.tmp"]
    others = [".q-train-00000-of-00010.tmp", ".p_x-train-00000-of-00010.tmp", "p-train-00000-of-00010"]
    make(tmp_path, *mine, *others)
    records.remove_temporary(tmp_path, "p")
    assert {path.name for path in tmp_path.iterdir()} == set(others)
