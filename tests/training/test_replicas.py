"""N devices compute the same as one, in float32 and in float16."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from t2t_revival.data import records
from t2t_revival.data.example_format import encode_example
from t2t_revival.hparams import HParams
from t2t_revival.training.run_config import RunConfig
from tests.support.copy_shards import HPARAMS, VOCAB, write_shards
from tests.support.copy_task import (
    Job,
    final_arrays,
    finished,
    start,
    start_workers,
    train_and_list_losses,
)
from tests.support.processes import Process

ROWS = 12  # of the smallest part of an update
WHOLE = 4 * ROWS  # of an update: all examples there are, so that only the way they are shared differs
FLOAT16 = "mixed_float16"
WAYS = {  # parts of an update, devices, precision
    "one device": (1, 1, "float32"),
    "accumulation": (4, 1, "float32"),
    "2 replicas": (2, 2, "float32"),
    "4 replicas": (4, 4, "float32"),
    "2 replicas, accumulation": (4, 2, "float32"),
    "2 replicas, XLA": (2, 2, "float32"),
    "2 replicas, accumulation, XLA": (4, 2, "float32"),
    "one device, float16": (1, 1, FLOAT16),
    "2 replicas, float16": (2, 2, FLOAT16),
    "2 replicas, float16, XLA": (2, 2, FLOAT16),
}
WORKERS = ("2 workers", "2 workers, XLA")
HALF = [way for way, (*_, precision) in WAYS.items() if precision == FLOAT16]


@dataclass(frozen=True)
class Outcomes:
    """Results of trainings on several devices and on one.

    Attributes:
        updates: by way, of 20 updates: losses, and what is in the last checkpoint.
        first_losses: by way, of a first update with dropout; all examples are equal, each replica has one.
    """

    updates: dict[str, tuple[list[float], dict]]
    first_losses: dict[str, float]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """One process for each number of replicas, and two workers; one device is in this process."""
    folder = tmp_path_factory.mktemp("replicas")
    paths = write_shards(folder, shards=1, examples=WHOLE)
    plain = HPARAMS.replace(
        layer_prepostprocess_dropout=0.0,
        train_steps=20,
        max_length=9,
        min_length_bucket=9,
        effective_batch_size=9 * WHOLE,
    )
    equal = folder / records.shard_name("equal", "train", 0, 1)
    records.write_shard(equal, [encode_example([5, 6, 7, 1], [5, 6, 7, 1])] * 8)
    dropout = HPARAMS.replace(
        batch_size=4, max_length=4, min_length_bucket=4, layer_prepostprocess_dropout=0.5, train_steps=1
    )

    updates, first_losses = {}, {}
    mirrored: dict[int, list[Job]] = {2: [], 4: []}
    for way, (parts, devices, precision) in WAYS.items():
        hparams = plain.replace(batch_size=9 * WHOLE // parts)
        if devices == 1:
            losses = losses_here(folder / way, paths, hparams, precision)
            updates[way] = losses, final_arrays(folder / way)
        else:
            config = {"strategy": "mirrored", "precision": precision, "xla": "XLA" in way}
            mirrored[devices].append(Job(folder / way, paths, hparams, config))
    first_losses["one device"] = losses_here(folder / "dropout", [equal], dropout)[0]

    for way in ("2 replicas", "2 replicas, XLA"):
        config = {"strategy": "mirrored", "xla": "XLA" in way}
        mirrored[2].append(Job(folder / f"{way}, dropout", [equal], dropout, config))
    for devices, jobs in mirrored.items():
        process = start(folder / f"process of {devices}", devices, jobs)
        for job, losses in zip(jobs, losses_of(process), strict=True):
            updates[job.output_dir.name] = losses, final_arrays(job.output_dir)
    for way in ("2 replicas", "2 replicas, XLA"):
        (first_losses[way],) = updates[f"{way}, dropout"][0]

    whole = plain.replace(batch_size=9 * WHOLE // 2)
    jobs = [
        Job(folder / "2 workers", paths, whole),
        Job(folder / "dropout, workers", [equal], dropout),
        Job(folder / "2 workers, XLA", paths, whole, {"xla": True}),
    ]
    chief, other = (losses_of(process) for process in start_workers(folder, 2, jobs))
    losses, (first_losses["2 workers"],), compiled = chief
    assert [losses, compiled] == [other[0], other[2]]
    updates["2 workers"] = losses, final_arrays(folder / "2 workers")
    updates["2 workers, XLA"] = compiled, final_arrays(folder / "2 workers, XLA")
    return Outcomes(updates, first_losses)


def losses_of(process: Process) -> list[list[float]]:
    """The losses of each training of a process."""
    return [outcome["losses"] for outcome in finished(process)]


def losses_here(
    output_dir: Path, shards: list[Path], hparams: HParams, precision: str = "float32"
) -> list[float]:
    """The losses of a training in this process, on one device."""
    config = RunConfig(output_dir, strategy="default", precision=precision, log_steps=1)
    return train_and_list_losses(shards, hparams, VOCAB, config)[0]


@pytest.mark.slow
@pytest.mark.parametrize("way", [way for way in [*WAYS, *WORKERS] if way not in ("one device", *HALF)])
def test_losses_and_weights_are_those_of_one_device(outcomes: Outcomes, way: str) -> None:
    """The parts have unequal numbers of tokens; no dropout."""
    (expected, arrays), (losses, others) = outcomes.updates["one device"], outcomes.updates[way]
    assert len(losses) == 20
    assert losses[-1] < losses[0] - 0.5, "it learned"
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(others[name], array, atol=2e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("way", HALF)
def test_float16_learns_what_float32_does(outcomes: Outcomes, way: str) -> None:
    (expected, arrays), (losses, others) = outcomes.updates["one device"], outcomes.updates[way]
    assert len(losses) == 20
    assert losses[-1] < losses[0] - 0.5, "it learned"
    np.testing.assert_allclose(losses, expected, rtol=5e-3)
    for name, array in arrays.items():
        if array.dtype.kind == "f" and name.startswith("model/"):
            assert np.abs(others[name] - array).mean() < 5e-3, name


@pytest.mark.slow
@pytest.mark.parametrize("way", ["2 replicas", "2 replicas, XLA", "2 workers"])
def test_dropout_differs_between_replicas(outcomes: Outcomes, way: str) -> None:
    """With the same bits, the mean loss of equal examples is that of one."""
    first_losses = outcomes.first_losses
    assert first_losses[way] != pytest.approx(first_losses["one device"], rel=1e-3)
