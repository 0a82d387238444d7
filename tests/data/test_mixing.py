"""Batches of mixtures: shares of the corpora, every example once in a pass, the same from any place on."""

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.data_kinds import first_batches, training_batches
from tests.support.line_corpus import translation, write_pairs

SIZES = {"a": 7, "b": 22, "c": 10}


@pytest.fixture(scope="module")
def read(tmp_path_factory, subwords_file):
    """Returns the first texts of mixtures of the corpora a, b and c, and the batches that they come from."""
    folder = tmp_path_factory.mktemp("corpora")
    for name, size in SIZES.items():
        pairs = [(f"{name} {number}", "b") for number in range(size)]
        write_pairs(folder / name, {"train": pairs, "dev": pairs[:1]})

    def problem(weights, **settings):
        listed = ",".join(f"{name}={folder / name}{weight}" for name, weight in weights.items())
        return translation(listed, vocab_size=0, **settings)

    problem(dict.fromkeys(SIZES, ":1"), vocab_file=subwords_file).generate_data(folder / "data")
    vocabulary = translation(None, vocab_size=0).open(folder / "data").vocabularies.inputs

    def texts(weights, count, chunk=1, **settings):
        made = problem({name: f":{weight}" if weight is not None else "" for name, weight in weights.items()})
        batches = training_batches(made, folder / "data", chunk=chunk, **settings)
        read = first_batches(batches, count)
        return [[vocabulary.decode(row) for row in inputs] for inputs, *_ in read], batches

    return texts


def one_by_one(read, weights, count):
    """The order of the examples: a batch has at most one of each corpus."""
    batches, _ = read(weights, count, seed=1)
    return list(chain.from_iterable(batches))[:count]


def test_shares_follow_the_weights_and_no_example_comes_again_before_all_have(read):
    texts = one_by_one(read, {"c": 3, "b": 1}, 200)
    for count in range(8, 201, 8):
        assert Counter(text[0] for text in texts[:count])["c"] == pytest.approx(0.75 * count, abs=1)
    of_c = [text for text in texts if text[0] == "c"]
    passes = [of_c[start : start + 10] for start in range(0, 150, 10)]
    assert all(sorted(texts) == sorted(passes[0]) and len(set(texts)) == 10 for texts in passes)
    assert len({tuple(texts) for texts in passes}) > 1


def test_without_weights_each_epoch_has_every_example_once(read):
    batches, opened = read({"a": None, "b": None}, 60, chunk=6)
    epochs = [opened.position(number).epoch for number in range(1, 61)]
    for epoch in (0, 1):
        start, stop = epochs.index(epoch), epochs.index(epoch + 1)
        found = sorted(chain.from_iterable(batches[start:stop]))
        assert found == sorted([f"a {n}" for n in range(7)] + [f"b {n}" for n in range(22)])


def test_another_corpus_does_not_change_the_order_of_one(read):
    alone = one_by_one(read, {"b": 1}, 40)
    mixed = one_by_one(read, {"b": 1, "c": 1}, 80)
    assert [text for text in mixed if text[0] == "b"] == alone


def test_a_corpus_of_weight_0_is_not_read(read):
    assert {text[0] for text in one_by_one(read, {"a": 1, "b": 0}, 60)} == {"a"}


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(
    st.dictionaries(st.sampled_from("abc"), st.floats(0.01, 9), min_size=1),
    st.integers(1, 50),
    st.integers(0, 60),
)
def test_any_place_is_reached_directly(read, weights, chunk, place):
    """Also where the last chunk of an epoch rounds to no example."""
    expected, batches = read(weights, place + 10, chunk, seed=5)
    resumed, other = read(weights, 10, chunk, seed=5, start=batches.position(place))
    assert other.note is None
    assert resumed == expected[place:]


def test_other_weights_begin_the_epoch_again_and_say_so(read):
    _, batches = read({"a": 1, "b": 3}, 25, chunk=5)
    _, other = read({"a": 1, "b": 1}, 0, chunk=5, start=batches.position(25))
    assert "(mixture=a:1,b:3, not a:1,b:1)" in other.note
    assert (other.position(0).chunk, other.position(0).batch) == (0, 0)
