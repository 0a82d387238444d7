"""The data of a copy task, whose target is its source, and the sizes of a model for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from t2t_revival import HParams
from t2t_revival.data import records
from t2t_revival.data.records import encode_example

VOCAB, EOS = 20, 1
HPARAMS = HParams(
    num_hidden_layers=1,
    hidden_size=32,
    filter_size=64,
    num_heads=2,
    layer_prepostprocess_dropout=0.1,
    layer_preprocess_sequence="n",
    layer_postprocess_sequence="da",
    learning_rate_warmup_steps=40,
    batch_size=256,
    effective_batch_size=0,
    max_length=16,
    train_steps=8,
)


def write_shards(folder: Path, shards: int, examples: int) -> list[Path]:
    """Writes shards of `examples` each, of 3 to 9 tokens with EOS."""
    generator = np.random.default_rng(3)
    paths = []
    for index in range(shards):
        path = folder / records.shard_name("copy", "train", index, shards)
        rows = [[*generator.integers(3, VOCAB, generator.integers(2, 9)), EOS] for _ in range(examples)]
        records.write_shard(path, [encode_example(row, row) for row in rows])
        paths.append(path)
    return paths


def assert_same(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    """Checks that two checkpoints have the same arrays, to the bit."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def split_of(paths: list[Path], swapped: bool = False) -> records.SplitData:
    """Returns the split of one corpus that some shards are."""
    return records.SplitData([records.CorpusShards("", paths, 0)], swapped)
