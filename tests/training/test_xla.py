"""XLA computes what TensorFlow does without it, and compiles a shape once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2t_revival import RunConfig, T2TError
from t2t_revival.training.engines.tensorflow_engine import TensorFlowEngine
from tests.support.copy_shards import HPARAMS, write_shards
from tests.support.copy_task import Job, finished, start


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "precision", "tolerance", "shortest_bucket"),
    [
        ({}, "float32", 1e-5, 6),
        pytest.param({"attention_window": 3}, "float32", 1e-5, 9, marks=pytest.mark.nightly),
        pytest.param({"decoder_self_attention": "ssru"}, "float32", 1e-5, 9, marks=pytest.mark.nightly),
        pytest.param({}, "mixed_float16", 5e-3, 9, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("packed", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_losses_are_those_without_xla(
    changes: dict[str, Any],
    precision: str,
    tolerance: float,
    shortest_bucket: int,
    packed: bool,
    tmp_path: Path,
) -> None:
    """Compiles two shapes of the plain model, for two buckets; the last batch of an epoch is filled up.

    The process that trains takes along, when it ends, what XLA has taken of memory.
    """
    if packed and "attention_window" in changes:
        pytest.skip("is refused")
    shards = write_shards(tmp_path, shards=1, examples=200)
    hparams = HPARAMS.replace(
        layer_prepostprocess_dropout=0.0,
        train_steps=10,
        max_length=9,
        min_length_bucket=shortest_bucket,
        length_bucket_step=1.5,
        **changes,
    )
    configs = {
        xla: {"strategy": "default", "xla": xla, "precision": precision, "packed": packed}
        for xla in (False, True)
    }
    jobs = [Job(tmp_path / f"xla-{xla}", shards, hparams, config) for xla, config in configs.items()]
    outcomes = finished(start(tmp_path / "process", 1, jobs))
    losses = {xla: outcome["losses"] for xla, outcome in zip(configs, outcomes, strict=True)}
    assert len(losses[True]) == 10
    np.testing.assert_allclose(losses[True], losses[False], rtol=tolerance)
    assert losses[True][-1] < losses[True][0]


@pytest.mark.slow
@pytest.mark.nightly
def test_each_bucket_is_compiled_once(tmp_path: Path) -> None:
    """XLA writes down each step that it compiles; some five epochs, with a batch to be filled up in each."""
    shards = write_shards(tmp_path, shards=1, examples=90)
    hparams = HPARAMS.replace(
        batch_size=60, max_length=9, min_length_bucket=4, length_bucket_step=1.5, train_steps=65
    )
    config = {"strategy": "default", "xla": True, "precision": "mixed_bfloat16", "packed": False}
    job = Job(tmp_path / "out", shards, hparams, config)
    dump = f"--xla_dump_to={tmp_path / 'dump'} --xla_dump_hlo_pass_re=none --xla_backend_optimization_level=0"
    (outcome,) = finished(start(tmp_path / "process", 1, [job], XLA_FLAGS=dump))
    assert outcome["step"] == 65
    steps = list((tmp_path / "dump").glob("*replica_step*before_optimizations.txt"))
    assert len(steps) == 3, "buckets of up to 4, 6 and 9 tokens"


def test_a_sharded_optimizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(T2TError, match="--shard_optimizer needs KERAS_BACKEND=jax"):
        TensorFlowEngine(RunConfig(tmp_path, strategy="default", shard_optimizer=True))
