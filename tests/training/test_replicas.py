"""N devices compute the same as one, in float32 and in float16."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from t2t_revival import RunConfig
from t2t_revival.data import records
from t2t_revival.data.records import encode_example
from tests.support.copy_shards import HPARAMS, VOCAB, write_shards
from tests.support.copy_task import Job, final_arrays, finished, start, start_workers, train_and_list_losses

pytestmark = pytest.mark.slow

WHOLE = 48  # examples of an update: all that there are, so that only the way they are shared differs
WAYS = {  # parts of an update, devices
    "one device": (1, 1),
    "accumulation": (4, 1),
    "2 replicas": (2, 2),
    "4 replicas": (4, 4),
    "2 replicas, accumulation": (4, 2),
    "2 replicas, XLA": (2, 2),
    "2 replicas, accumulation, XLA": (4, 2),
    "2 workers": (2, 2),
    "2 workers, XLA": (2, 2),
    "one device, float16": (1, 1),
    "2 replicas, float16": (2, 2),
    "2 replicas, float16, XLA": (2, 2),
}
CORE = "2 replicas, accumulation"  # test_distribution has two workers
PLAIN = HPARAMS.replace(
    layer_prepostprocess_dropout=0.0,
    train_steps=20,
    max_length=9,
    min_length_bucket=9,
    effective_batch_size=9 * WHOLE,
)
DROPOUT = HPARAMS.replace(  # one example for each replica
    batch_size=4, max_length=4, min_length_bucket=4, layer_prepostprocess_dropout=0.5, train_steps=1
)


class Outcome(NamedTuple):
    """The losses of 20 updates, the last checkpoint's arrays, and the loss of an update with dropout."""

    losses: list[float]
    arrays: dict[str, np.ndarray]
    with_dropout: float


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """Trains in a way, at its first call: one device is in this process, others are in their own."""
    folder = tmp_path_factory.mktemp("replicas")
    shards = write_shards(folder, shards=1, examples=WHOLE)
    equal = [folder / records.shard_name("equal", "train", 0, 1)]
    records.write_shard(equal[0], [encode_example([5, 6, 7, 1], [5, 6, 7, 1])] * 8)

    @cache
    def train(way: str) -> Outcome:
        parts, devices = WAYS[way]
        config: dict[str, Any] = {"strategy": "mirrored" if devices > 1 else "default", "xla": "XLA" in way}
        config["precision"] = "mixed_float16" if "float16" in way else "float32"
        out, plain = folder / way, PLAIN.replace(batch_size=9 * WHOLE // parts)
        jobs = [Job(out, shards, plain, config), Job(folder / f"{way}, dropout", equal, DROPOUT, config)]
        if devices == 1:
            both = [losses_here(job) for job in jobs]
        elif "workers" in way:
            both, other = (
                [each["losses"] for each in finished(process)]
                for process in start_workers(folder / f"processes of {way}", 2, jobs)
            )
            assert both[0] == other[0]
        else:
            process = start(folder / f"process of {way}", devices, jobs)
            both = [each["losses"] for each in finished(process)]
        return Outcome(both[0], final_arrays(out), both[1][0])

    return train


def losses_here(job: Job) -> list[float]:
    config = RunConfig(job.output_dir, log_steps=1, **job.config)
    return train_and_list_losses(job.shards, job.hparams, VOCAB, config)[0]


def marked(precision: str) -> list[Any]:
    """The ways of a precision to compare with one device, most of which a pull request need not run."""
    ways = [way for way in WAYS if ("float16" in way) == (precision == "float16") and way != "one device"]
    return [way if way == CORE else pytest.param(way, marks=pytest.mark.nightly) for way in ways]


@pytest.mark.parametrize("way", marked("float32"))
def test_losses_and_weights_are_those_of_one_device(trained: Callable[[str], Outcome], way: str) -> None:
    """The parts have unequal numbers of tokens. With the same bits of dropout for all replicas, the mean loss
    of equal examples would be the loss of one.
    """
    expected, found = trained("one device"), trained(way)
    assert len(found.losses) == 20
    assert found.losses[-1] < found.losses[0] - 0.5, "it learned"
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-5)
    for name, array in expected.arrays.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(found.arrays[name], array, atol=2e-5, err_msg=name)
    if WAYS[way][1] > 1:
        assert found.with_dropout != pytest.approx(expected.with_dropout, rel=1e-3)


@pytest.mark.parametrize("way", marked("float16"))
def test_float16_learns_what_float32_does(trained: Callable[[str], Outcome], way: str) -> None:
    expected, found = trained("one device"), trained(way)
    assert len(found.losses) == 20
    assert found.losses[-1] < found.losses[0] - 0.5, "it learned"
    np.testing.assert_allclose(found.losses, expected.losses, rtol=5e-3)
    for name, array in expected.arrays.items():
        if array.dtype.kind == "f" and name.startswith("model/"):
            assert np.abs(found.arrays[name] - array).mean() < 5e-3, name
