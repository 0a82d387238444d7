"""Updates whose loss or gradients are not finite are skipped, as if their batch did not exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import HParams, T2TError, make_optimizer
from t2t_revival.checkpoints import directory as checkpoints
from tests.support import bad_batches
from tests.support.bad_batches import HPARAMS, HUGE, INF, NAN, trained, weighted, without
from tests.support.copy_shards import assert_same
from tests.support.processes import Process

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_the_optimizer_leaves_an_update_out(tiny_hparams: HParams, accumulate: int, value: float) -> None:
    """One number of one gradient of one micro-batch is bad; 1e30 is one whose square is not finite."""
    bad = np.ones((3, 4), "float32")
    bad[1, 2] = value
    good = [tf.ones((3, 4)), tf.fill((2,), 0.5)]
    states = []
    for gradient in (bad, None):
        optimizer = make_optimizer(tiny_hparams, accumulate)
        variables = [tf.Variable(tf.ones((3, 4))), tf.Variable(tf.ones((2,)))]
        for _ in range(2 * accumulate):
            optimizer.apply(good, variables)
        if gradient is not None:
            for number in range(accumulate):
                optimizer.apply([tf.constant(bad) if number == 0 else good[0], good[1]], variables)
            assert optimizer.updates == 2
        for _ in range(accumulate):
            optimizer.apply(good, variables)
        assert optimizer.updates == 3
        states.append([np.array(v) for v in [*variables, *optimizer.moments]])
    for found, expected in zip(*states, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_training_goes_on_as_if_the_batch_had_not_been(shard: Path, tmp_path: Path) -> None:
    with without({3}):
        expected, _, _ = trained(shard, tmp_path / "good")
    for weight in (NAN, INF, HUGE):
        with weighted({3: weight}):
            found, notes, result = trained(shard, tmp_path / f"bad {weight}")
        assert_same(found, expected)
        assert len(notes) == 1
        wrong = "gradients are not finite" if weight == HUGE else "loss is nan"
        assert notes[0] == f"update 3 skipped: {wrong} (1 in a row, 1 in all)"
        assert (result.step, result.skipped_updates) == (4, 1)


def test_a_bad_micro_batch_leaves_the_whole_update_out(shard: Path, tmp_path: Path) -> None:
    """The precision is bfloat16; `test_two_replicas_decide_the_same` accumulates in float32."""
    hparams = HPARAMS.replace(effective_batch_size=3 * HPARAMS.batch_size)
    config: dict[str, Any] = {"hparams": hparams, "precision": "mixed_bfloat16"}
    with without({4, 5, 6}):
        expected, _, _ = trained(shard, tmp_path / "good", **config)
    for number in (4, 6):  # the first and the last of the second update
        with weighted({number: NAN}):
            found, notes, result = trained(shard, tmp_path / f"bad {number}", **config)
        assert_same(found, expected)
        assert (len(notes), result.step) == (1, 4)


def test_a_run_resumed_around_a_bad_batch_ends_with_the_same_bits(shard: Path, tmp_path: Path) -> None:
    """Random states, which skipped updates consume too, adapters and moving averages resume with the rest."""
    hparams = HPARAMS.replace(layer_prepostprocess_dropout=0.2, lora_rank=2, ema_decay=0.5, train_steps=5)
    with weighted({3: NAN, 5: INF}):
        whole, notes, result = trained(shard, tmp_path / "whole", hparams=hparams)
        for stop in (2, 3):
            out = tmp_path / f"stopped at {stop}"
            trained(shard, out, hparams=hparams.replace(train_steps=stop))
            parts, _, resumed = trained(shard, out, hparams=hparams)
            assert_same(parts, whole)
            assert len(notes) == result.skipped_updates == resumed.skipped_updates == 2
            assert (result.seen.examples, result.seen.target_tokens) == (
                resumed.seen.examples,
                resumed.seen.target_tokens,
            )


def test_bad_ones_in_a_row_end_training_and_good_ones_between_do_not(shard: Path, tmp_path: Path) -> None:
    with weighted(dict.fromkeys((2, 4, 6), NAN)):
        assert trained(shard, tmp_path / "between", max_nonfinite_steps=2)[2].step == 4
    with weighted(dict.fromkeys((3, 4), NAN)), pytest.raises(T2TError, match=r"2 times in a row.*step 2\)"):
        trained(shard, tmp_path / "row", max_nonfinite_steps=2, eval_frequency=2)
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path / "row")] == [2]
    assert trained(shard, tmp_path / "row", max_nonfinite_steps=2)[2].step == 4


@pytest.mark.nightly
def test_two_replicas_decide_the_same(tmp_path: Path) -> None:
    """With and without accumulation."""
    said = Process(tmp_path / "process", bad_batches.main, [tmp_path, 2]).end()
    assert said.count("the same") == 2
