"""Freed memory is used again, also after TensorFlow's generators have turned that off."""

import resource
import sys
from pathlib import Path

import pytest

from t2t_revival.data.batching import TrainingBatches
from t2t_revival.training.engines.tensorflow_engine import batch_dataset
from tests.support.copy_shards import HPARAMS, split_of, write_shards

BLOCKS, BYTES = 20, 8 * 2**20


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="is about glibc")
def test_large_blocks_cost_no_new_pages_while_batches_are_read(tmp_path: Path) -> None:
    batches = iter(batch_dataset(TrainingBatches(split_of(write_shards(tmp_path, 1, 40)), HPARAMS)))
    next(batches)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for number in range(BLOCKS):
        assert len(bytes([number]) * BYTES) == BYTES
    new_pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert new_pages * resource.getpagesize() < 3 * BYTES, "of the twenty blocks that were filled"
