"""Batches with reversed targets: tokens before EOS, and nothing else, are reversed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2t_revival.data.batching import TrainingBatches
from t2t_revival.data.evaluation_batches import evaluation_batches
from t2t_revival.data.example_format import encode_example
from t2t_revival.data.records import Shards, write_shard
from t2t_revival.hparams import HParams

FORWARDS = HParams(batch_size=64, max_length=20)
BACKWARDS = FORWARDS.replace(reverse_target=True)
EOS = 1


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A shard of pairs of other lengths on each side, one of them with an empty target."""
    generator = np.random.default_rng(0)
    rows = [[*generator.integers(2, 99, length), EOS] for length in (3, 7, 1, 12, 5, 0)]
    path = tmp_path_factory.mktemp("shards") / "p-train-00000-of-00001"
    write_shard(path, [encode_example(*pair) for pair in zip(rows[:0:-1], rows[1:], strict=True)])
    return [path]


def batches(shards: list[Path], hparams: HParams, padded: bool) -> list[tuple[np.ndarray, ...]]:
    """The first training batches, and then those of an evaluation."""
    found = TrainingBatches(shards, hparams, pad_to_bucket=padded).dataset().take(4)
    of_both = [*found, *evaluation_batches(shards, hparams)]
    return [(x["inputs"], x["targets"], y, weights) for x, y, weights in of_both]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
def test_only_the_tokens_of_targets_are_reversed(shards: list[Path], padded: bool, swapped: bool) -> None:
    shards = Shards(shards, swapped)
    pairs = zip(batches(shards, FORWARDS, padded), batches(shards, BACKWARDS, padded), strict=True)
    for (inputs, targets, _, weights), (own_inputs, own_targets, labels, own_weights) in pairs:
        np.testing.assert_array_equal(inputs, own_inputs)
        np.testing.assert_array_equal(own_targets, labels)
        np.testing.assert_array_equal(weights, own_weights)
        for row, own in zip(np.asarray(targets).tolist(), np.asarray(own_targets).tolist(), strict=True):
            end = row.index(EOS) if EOS in row else 0
            assert own == row[:end][::-1] + row[end:]
