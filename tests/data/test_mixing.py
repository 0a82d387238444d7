"""Chunks of mixtures: shares of the corpora, every example once in a pass, and the same from any place on."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data.mixing import Mixing
from t2t_revival.data.records import CorpusShards, write_shard

SHARDS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shards")


def corpus(folder: Path, name: str, examples: int, weight: float) -> CorpusShards:
    """Writes a corpus whose records are NAME NUMBER."""
    records = [f"{name} {number}".encode() for number in range(examples)]
    paths = []
    for shard in range(SHARDS):
        path = folder / f"{name}-{examples}-{shard}"
        write_shard(path, records[shard::SHARDS])
        paths.append(path)
    return CorpusShards(name, paths, examples, weight)


def texts(mixing: Mixing, epoch: int, first: int = 0) -> list[list[str]]:
    return [
        [record.decode() for block in blocks for record in block.records]
        for blocks in mixing.chunks(epoch, first)
    ]


def test_shares_follow_the_weights_and_no_example_comes_again_before_all_have(folder):
    small, large = corpus(folder, "small", 10, 3.0), corpus(folder, "large", 40, 1.0)
    epochs = [
        text for epoch in range(4) for chunk in texts(Mixing([small, large], 1, 8), epoch) for text in chunk
    ]
    assert len(epochs) == 200
    assert Counter(text.split()[0] for text in epochs) == {"small": 150, "large": 50}
    from_small = [text for text in epochs if text.startswith("small")]
    passes = [from_small[start : start + 10] for start in range(0, 150, 10)]
    assert all(sorted(each) == sorted(passes[0]) for each in passes)
    assert len({tuple(each) for each in passes}) > 1


def test_without_weights_each_epoch_has_every_example_once(folder):
    corpora = [corpus(folder, "a", 7, 7), corpus(folder, "b", 22, 22)]
    mixing = Mixing(corpora, 1, 6)
    for epoch in range(3):
        found = [text for chunk in texts(mixing, epoch) for text in chunk]
        assert sorted(found) == sorted([f"a {n}" for n in range(7)] + [f"b {n}" for n in range(22)])


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.floats(0.01, 9)), min_size=1, max_size=3),
    st.integers(1, 20),
    st.integers(0, 5),
    st.data(),
)
def test_any_place_is_reached_directly(folder, sizes, chunk, epoch, data):
    corpora = [corpus(folder, "abc"[number], *size) for number, size in enumerate(sizes)]
    through = Mixing(corpora, 5, chunk)
    for earlier in range(epoch):
        texts(through, earlier)
    expected = texts(through, epoch)
    first = data.draw(st.integers(0, len(expected)))
    assert texts(Mixing(corpora, 5, chunk), epoch, first) == expected[first:]


def test_blocks_know_how_often_their_corpus_was_read(folder):
    mixing = Mixing([corpus(folder, "a", 4, 1)], 1, 4)
    assert {block.epoch for epoch in range(3) for blocks in mixing.chunks(epoch, 0) for block in blocks} == {
        0,
        1,
        2,
    }


def test_another_corpus_does_not_change_the_order_of_one(folder):
    one, other = corpus(folder, "a", 20, 1), corpus(folder, "b", 20, 1)
    alone = [text for epoch in range(2) for chunk in texts(Mixing([one], 1, 10), epoch) for text in chunk]
    mixed = [
        text for epoch in range(2) for chunk in texts(Mixing([one, other], 1, 10), epoch) for text in chunk
    ]
    assert [text for text in mixed if text[0] == "a"] == alone


def test_a_corpus_of_weight_0_is_not_read(folder):
    corpora = [corpus(folder, "a", 5, 1), corpus(folder, "b", 5, 0)]
    assert {text[0] for chunk in texts(Mixing(corpora, 1, 5), 0) for text in chunk} == {"a"}
