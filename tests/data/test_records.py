import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data import records
from t2t_revival.errors import T2TError

EXAMPLES = [([3, 4, 1], [5, 1]), ([300, 70_000, 1], [1]), ([7] * 200 + [1], list(range(1000)))]


@pytest.fixture
def shard(tmp_path):
    path = tmp_path / "p-train-00000-of-00001"
    records.write_shard(path, [records.encode_example(*example) for example in EXAMPLES])
    return path


def test_checksums_are_crc32c():
    # The check values of CRC-32C for "123456789" and for 32 zero bytes (RFC 3720, B.4).
    blobs = [bytes(32), b"123456789", b""]
    assert records._crc32c_of_descending(blobs).tolist() == [0x8A9136AA, 0xE3069283, 0]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=20))
def test_checksums_of_many_are_those_of_each(blobs):
    def alone(blob):
        crc = 0xFFFFFFFF
        for byte in blob:
            crc ^= byte
            for _ in range(8):
                crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        crc ^= 0xFFFFFFFF
        return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF

    assert records._masked_crc32c(blobs) == [alone(blob) for blob in blobs]


@settings(max_examples=50, deadline=None)
@given(*[st.lists(st.integers(0, 2**40), max_size=30)] * 2)
def test_examples_are_tf_train_examples(inputs, targets):
    import tensorflow as tf

    example = tf.train.Example.FromString(records.encode_example(inputs, targets))
    features = example.features.feature
    assert set(features) == {"inputs", "targets"}
    assert list(features["inputs"].int64_list.value) == inputs
    assert list(features["targets"].int64_list.value) == targets


def test_tensorflow_reads_what_was_written_in_order(shard):
    assert list(records.read([shard, shard])) == EXAMPLES * 2


def test_the_dataset_is_int32(shard):
    example = next(iter(records.dataset([shard])))
    assert {name: (values.dtype.name, values.shape.rank) for name, values in example.items()} == {
        "inputs": ("int32", 1),
        "targets": ("int32", 1),
    }
    np.testing.assert_array_equal(example["inputs"], [3, 4, 1])


def test_tensorflow_writes_the_same_file(shard, tmp_path):
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for example in EXAMPLES:
            writer.write(records.encode_example(*example))
    assert (tmp_path / "theirs").read_bytes() == shard.read_bytes()


def test_an_empty_shard_can_be_read(tmp_path):
    records.write_shard(tmp_path / "empty", [])
    assert list(records.read([tmp_path / "empty"])) == []


def second_record(content):
    return 16 + struct.unpack("<Q", content[:8])[0]


def test_a_flipped_bit_is_named_with_shard_and_byte(shard, tmp_path):
    content = bytearray(shard.read_bytes())
    at = second_record(content)
    content[at + 20] ^= 1  # TensorFlow counts from the content, behind 12 bytes of length and its checksum
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    with pytest.raises(T2TError, match=rf"bad: damaged \(corrupted record at {at + 12}\)"):
        list(records.read([shard, bad]))


def test_a_truncated_shard_is_named(shard):
    shard.write_bytes(shard.read_bytes()[:-3])
    with pytest.raises(T2TError, match=rf"{shard.name}: damaged \((truncated|corrupted) record at \d+\)"):
        list(records.read([shard]))


def test_a_foreign_record_is_named(tmp_path):
    records.write_shard(tmp_path / "foreign", [b"no example"])
    with pytest.raises(T2TError, match="foreign: damaged"):
        list(records.read([tmp_path / "foreign"]))


def test_another_error_is_not_blamed_on_a_shard(shard):
    with pytest.raises(ZeroDivisionError), records.naming_damage([shard]):
        _ = 1 / 0


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


def test_an_interrupted_write_keeps_the_old_file_and_leaves_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted():
        with records.writing(path) as file:
            file.write(b"new")
            assert (tmp_path / ".file.tmp").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_leftovers_of_a_problem_are_removed_and_no_others(tmp_path):
    mine = [".p-train-00000-of-00010.tmp", ".p.meta.json.tmp", ".vocab.p.100.spm.tmp"]
    others = [".q-train-00000-of-00010.tmp", ".p_x-train-00000-of-00010.tmp", "p-train-00000-of-00010"]
    make(tmp_path, *mine, *others)
    records.remove_temporary(tmp_path, "p")
    assert {path.name for path in tmp_path.iterdir()} == set(others)
