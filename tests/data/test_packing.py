"""Packed batches: each pair once, at a place of its own on both sides, in rows that are full."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import HParams
from t2t_revival.data import packing
from t2t_revival.data.batching import evaluation_batches
from t2t_revival.data.examples import SIDES
from t2t_revival.data.packing import SEGMENTS, pack, places_of
from tests.support.copy_shards import split_of
from tests.support.data_kinds import KINDS, open_batches, open_problem, pairs_of, training_batches
from tests.support.shard_files import write_shards

HPARAMS = HParams(batch_size=96, max_length=24)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Five shards of 200 pairs with 2 to 30 tokens, some of which are longer than max_length."""
    lengths = np.random.default_rng(1).integers(2, 31, (200, 2)).tolist()
    pairs = [([2 + n] * (a - 1) + [1], [1002 + n] * (b - 1) + [1]) for n, (a, b) in enumerate(lengths)]
    return write_shards(tmp_path_factory.mktemp("shards"), pairs, 5), pairs


def unpacked(element):
    """Returns the pairs of ids of a packed batch."""
    pairs = []
    for source, target, *numbers in zip(*(element[n] for n in ("inputs", "targets", *SEGMENTS)), strict=True):
        assert numbers[0].max() == numbers[1].max()
        assert ((source > 0) == (numbers[0] > 0)).all()
        assert ((target > 0) == (numbers[1] > 0)).all()
        for number in range(1, numbers[0].max() + 1):
            pairs.append((source[numbers[0] == number].tolist(), target[numbers[1] == number].tolist()))
    return pairs


def read(batches, count):
    """Returns the elements of the first batches, each with the state after it."""
    elements = zip(range(1, count + 1), batches.elements(), strict=False)
    return [(batches.position(number), element) for number, element in elements]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 16), st.integers(1, 16)), min_size=1, max_size=60))
def test_every_example_has_a_place_of_its_own(lengths):
    source, target = np.array(lengths).T
    rows = pack(source, target, 16)
    members, places = np.concatenate(rows), places_of(rows, source, target)
    assert sorted(members.tolist()) == list(range(len(lengths)))
    for sizes, begins in ((source, places.sources), (target, places.targets)):
        taken = np.zeros((len(rows), 17), int)
        for member, row, begin in zip(members, places.rows, begins, strict=True):
            taken[row, begin : begin + sizes[member]] += 1
        assert taken.max() == 1
        assert not taken[:, 16].any()
        np.testing.assert_array_equal(taken[:, :-1] >= taken[:, 1:], True, "rows have no gap")


@pytest.mark.parametrize("replicas", [1, 3])
def test_all_batches_of_an_epoch_have_one_shape_and_each_short_enough_pair(corpus, replicas):
    shards, pairs = corpus
    batches = open_batches(shards, HPARAMS, packed=True, replicas=replicas, chunk=60)
    found = []
    for state, element in read(batches, 200):
        if state.epoch:
            break
        assert {element[name].shape for name in ("inputs", "targets", *SEGMENTS)} == {(4 * replicas, 24)}
        found += unpacked(element)
        assert element["weights"].item() == pytest.approx(1 / (element["targets"] > 0).sum())
    assert sorted(found) == sorted(pair for pair in pairs if max(map(len, pair)) <= 24)


def test_a_training_resumes_at_the_next_packed_batch(corpus):
    whole = read(open_batches(corpus[0], HPARAMS, packed=True), 12)
    state, _ = whole[6]
    rest = read(open_batches(corpus[0], HPARAMS, state, packed=True), 5)
    for (_, one), (_, other) in zip(whole[7:], rest, strict=True):
        assert all((one[name] == other[name]).all() for name in one)
    assert "packed" in open_batches(corpus[0], HPARAMS, state).note


def test_rows_are_full():
    lengths = np.random.default_rng(2).gamma(4, 4, (8192, 2)).astype(int) + 2
    source, target = np.minimum(lengths, 64).T
    rows = pack(source, target, 64)
    assert max(source.sum(), target.sum()) > 0.95 * 64 * len(rows)


def test_an_evaluation_has_one_shape_for_what_fits_a_training(corpus):
    shards, pairs = corpus
    batches = evaluation_batches(split_of(shards), HPARAMS, fixed_shapes=True, packed=True)
    found = []
    for batch in batches:
        if SEGMENTS[0] in batch:
            assert batch["inputs"].shape == batch["targets"].shape == (4, 24)
            found += unpacked(batch)
        else:
            found += pairs_of((batch["inputs"], batch["targets"]))
            assert max(map(len, found[-1])) > 24
    assert sorted(found) == sorted(pairs)


def in_pieces(element):
    """Returns the ids of each pair of a batch, the weight of its tokens and its alignments."""
    numbers = [
        element.get(segments, (element[side] > 0).astype(int))
        for segments, side in zip(SEGMENTS, SIDES, strict=True)
    ]
    weights = np.broadcast_to(element["weights"], element["targets"].shape) * (element["targets"] > 0).sum()
    for row, of_source, of_target in zip(range(len(weights)), *numbers, strict=True):
        for number in range(1, of_source.max() + 1):
            source, target = of_source == number, of_target == number
            (weight,) = {round(float(value), 4) for value in weights[row, target]}
            shares = element["alignments"][row][np.ix_(target, source)] if "alignments" in element else None
            ids = element["inputs"][row, source].tolist(), element["targets"][row, target].tolist()
            yield ids, weight, None if shares is None else shares.tolist()


@pytest.mark.parametrize("kind", ["weighted", "aligned", "aligned_rev", "mixture", "separate", "trees"])
def test_pairs_keep_their_weights_and_alignments(sources, tmp_path, monkeypatch, kind):
    """Windows of 50 pairs, whose last rows go on in the next one."""
    monkeypatch.setattr(packing, "WINDOW", 50)
    kind, reverse, _ = kind.partition("_rev")
    problem = open_problem(KINDS[kind], sources)
    problem.generate_data(tmp_path)
    hparams = HPARAMS.replace(batch_size=160, max_length=40, guided_alignment_weight=float(kind == "aligned"))
    found = []
    for packed in (False, True):
        batches = training_batches(
            problem.reversed() if reverse else problem, tmp_path, hparams, packed=packed
        )
        of_epoch = itertools.takewhile(lambda made: not made[0].epoch, read(batches, 1000))
        found.append([piece for _, element in of_epoch for piece in in_pieces(element)])
    assert len(found[0]) > 40
    assert sorted(map(repr, found[0])) == sorted(map(repr, found[1]))
