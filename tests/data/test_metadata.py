import dataclasses
import json

import pytest

from t2t_revival.data.metadata import (
    Metadata,
    SplitCounts,
    check_same,
    check_sizes,
    data_fingerprint,
    dropped,
)
from t2t_revival.errors import T2TError


def test_counts_add_up_and_survive_json():
    one = SplitCounts(2, 1, 10, 12, {5: 1, 7: 1}, (100,))
    both = one + SplitCounts(1, 0, 3, 4, {5: 1}, (50,))
    assert both == SplitCounts(3, 1, 13, 16, {5: 2, 7: 1}, (100, 50))
    assert SplitCounts.from_dict(json.loads(json.dumps(dataclasses.asdict(both)))) == both


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format_version": 1}', '{"format_version": 99}'])
def test_corrupt_or_foreign_metadata_is_named(tmp_path, content):
    path = tmp_path / "p.meta.json"
    path.write_text(content)
    with pytest.raises(T2TError, match=r"p\.meta\.json: (corrupt|format 99)"):
        Metadata.load(path)


def test_check_same_accepts_what_is_not_asked_for(tmp_path):
    found = Metadata("p", "sample", "en", "de", {}, vocab_size=100)
    check_same(tmp_path, found, None, 0)
    check_same(tmp_path, found, "sample", 100)


def test_check_sizes_names_the_shard(tmp_path):
    shard = tmp_path / "p-dev-00000-of-00001"
    shard.write_bytes(b"1234")
    check_sizes([shard], SplitCounts(shard_bytes=(4,)))
    with pytest.raises(T2TError, match=r"p-dev-00000-of-00001: 4 bytes instead of 5"):
        check_sizes([shard], SplitCounts(shard_bytes=(5,)))
    with pytest.raises(T2TError, match="1 shards like p-dev"):
        check_sizes([shard], SplitCounts(shard_bytes=(4, 4)))


@pytest.mark.parametrize(("max_length", "count"), [(4, 6), (5, 5), (6, 5), (7, 2), (256, 0)])
def test_examples_longer_than_max_length_are_counted(max_length, count):
    assert dropped(SplitCounts(examples=6, lengths={5: 1, 7: 3, 256: 2}), max_length) == count


def test_a_fingerprint_is_of_content_not_of_place(tmp_path):
    def fingerprint(*contents, folder, vocabulary="v"):
        (tmp_path / folder).mkdir()
        paths = [tmp_path / folder / f"dev-{number}" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        return data_fingerprint(paths, vocabulary)

    known = fingerprint(b"ab", b"c", folder="one")
    assert len(known) == 8
    assert fingerprint(b"ab", b"c", folder="two") == known
    others = (
        fingerprint(b"ab", b"d", folder="word"),
        fingerprint(b"a", b"bc", folder="border"),
        fingerprint(b"c", b"ab", folder="order"),
        fingerprint(b"ab", b"c", folder="vocabulary", vocabulary="w"),
        fingerprint(b"ab", folder="fewer"),
    )
    assert len({known, *others}) == 6
