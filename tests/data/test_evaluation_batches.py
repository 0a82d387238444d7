"""Batches of an evaluation: every example once, in few shapes where they are asked for."""

from pathlib import Path

import numpy as np
import pytest

from t2t_revival.data.evaluation_batches import EvaluationBatch, evaluation_batches
from t2t_revival.data.example_format import encode_example
from t2t_revival.data.records import Shards, write_shard
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams

HPARAMS = HParams(batch_size=64, max_length=24)
EOS = 1
Pair = tuple[list[int], list[int]]


def pair(number: int, source: int, target: int) -> Pair:
    """Returns a pair of the given lengths, EOS included, with ids of its own."""
    return [2 + number] * (source - 1) + [EOS], [1002 + number] * (target - 1) + [EOS]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Pair]]:
    """Three shards of 100 pairs with 2 to 40 tokens, some of which are longer than max_length."""
    generator = np.random.default_rng(1)
    pairs = [pair(i, *generator.integers(2, 41, 2)) for i in range(100)]
    folder = tmp_path_factory.mktemp("shards")
    shards = [folder / f"x-dev-{k:05d}-of-00003" for k in range(3)]
    for k, shard in enumerate(shards):
        write_shard(shard, [encode_example(*one) for one in pairs[k::3]])
    return shards, pairs


def pairs_of(batches: list[EvaluationBatch]) -> list[Pair]:
    rows = (
        ([i for i in source if i], [i for i in target if i])
        for features, labels, _ in batches
        for source, target in zip(features["inputs"].tolist(), labels.tolist(), strict=True)
    )
    return [row for row in rows if row != ([], [])]


@pytest.mark.parametrize("fixed_shapes", [False, True])
@pytest.mark.parametrize("replicas", [1, 3])
def test_every_example_once_whole(corpus: tuple, replicas: int, fixed_shapes: bool) -> None:
    shards, pairs = corpus
    batches = evaluation_batches(shards, HPARAMS, replicas=replicas, fixed_shapes=fixed_shapes)
    assert sorted(pairs_of(batches)) == sorted(pairs)
    for features, labels, weights in batches:
        rows, width = labels.shape[0], max(labels.shape[1], features["inputs"].shape[1])
        assert rows % replicas == 0
        assert rows // replicas * width <= HPARAMS.batch_size or rows == replicas
        np.testing.assert_array_equal(features["targets"], labels)
        np.testing.assert_array_equal(weights, (labels != 0).astype(np.float32))
        assert (labels.dtype, weights.dtype) == (np.int32, np.float32)
    longest = [max(labels.shape[1], features["inputs"].shape[1]) for features, labels, _ in batches]
    assert longest == sorted(longest, reverse=True)


def test_fixed_shapes_are_few(corpus: tuple) -> None:
    batches = evaluation_batches(corpus[0], HPARAMS, fixed_shapes=True)
    shapes = {(features["inputs"].shape, labels.shape) for features, labels, _ in batches}
    assert shapes == {((rows, width), (rows, width)) for rows, width in ((1, 64), (2, 32), (4, 16))}


def test_sides_are_swapped_and_targets_reversed(corpus: tuple) -> None:
    shards, pairs = corpus
    batches = evaluation_batches(Shards(shards, True), HPARAMS.replace(reverse_target=True))
    expected = [(target, [*source[-2::-1], EOS]) for source, target in pairs]
    assert sorted(pairs_of(batches)) == sorted(expected)


def test_no_shards() -> None:
    with pytest.raises(T2TError, match="t2t-datagen"):
        evaluation_batches([], HPARAMS)


def test_truncated_shard_names_file_and_byte(corpus: tuple, tmp_path: Path) -> None:
    whole = corpus[0][0].read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[:-3])
    with pytest.raises(T2TError, match="cut: truncated or corrupt at byte "):
        evaluation_batches([cut], HPARAMS)
