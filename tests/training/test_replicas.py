"""N devices compute the same as one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from t2t_revival.data import records
from t2t_revival.hparams import HParams
from tests.support.copy_task import HPARAMS, final_arrays, start, start_workers, write_shards

ROWS = 12  # of the smallest part of an update
WHOLE = 4 * ROWS  # of an update: all examples there are, so that only the way they are shared differs
WAYS = {  # parts of an update, devices, strategy
    "one device": (1, 1, "default"),
    "accumulation": (4, 1, "default"),
    "2 replicas": (2, 2, "mirrored"),
    "4 replicas": (4, 4, "mirrored"),
    "2 replicas, accumulation": (4, 2, "mirrored"),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[float], dict]]:
    """Losses of 20 updates in each way, and the content of the last checkpoint."""
    folder = tmp_path_factory.mktemp("replicas")
    paths = write_shards(folder, shards=1, examples=WHOLE)
    plain = HPARAMS.replace(
        layer_prepostprocess_dropout=0.0,
        train_steps=20,
        max_length=9,
        min_length_bucket=9,
        effective_batch_size=9 * WHOLE,
    )
    found = {"2 workers": two_workers(folder / "2-workers", paths, plain.replace(batch_size=9 * WHOLE // 2))}
    for way, (parts, devices, strategy) in WAYS.items():
        hparams = plain.replace(batch_size=9 * WHOLE // parts)
        process = start(folder / way.replace(" ", "-"), paths, hparams, devices, strategy)
        said = process.communicate(timeout=300)[0]
        assert process.returncode == 0
        losses = json.loads(said.splitlines()[-1])["losses"]
        found[way] = losses, final_arrays(folder / way.replace(" ", "-") / "out")
    return found


def new_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def two_workers(folder: Path, shards: list[Path], hparams: HParams) -> tuple[list[float], dict]:
    """The chief's losses; the other must have the same."""
    processes = start_workers(new_folder(folder), shards, hparams, 2)
    losses, others = (
        json.loads(process.communicate(timeout=300)[0].splitlines()[-1])["losses"] for process in processes
    )
    assert losses == others
    return losses, final_arrays(folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize("way", [*list(WAYS)[1:], "2 workers"])
def test_losses_and_weights_are_those_of_one_device(
    outcomes: dict[str, tuple[list[float], dict]], way: str
) -> None:
    """The parts have unequal numbers of tokens; no dropout."""
    (expected, arrays), (losses, others) = outcomes["one device"], outcomes[way]
    assert len(losses) == 20
    assert losses[-1] < losses[0] - 0.5, "it learned"
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(others[name], array, atol=2e-5, err_msg=name)


@pytest.fixture(scope="module")
def first_losses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Losses of the first update, by way; all examples are equal, and each replica has one."""
    folder = tmp_path_factory.mktemp("dropout")
    path = folder / records.shard_name("copy", "train", 0, 1)
    records.write_shard(path, [records.encode_example([5, 6, 7, 1], [5, 6, 7, 1])] * 8)
    hparams = HPARAMS.replace(
        batch_size=4, max_length=4, min_length_bucket=4, layer_prepostprocess_dropout=0.5, train_steps=1
    )
    chief, other = start_workers(new_folder(folder / "workers"), [path], hparams, 2)
    processes = {
        "one device": start(folder / "one", [path], hparams, 1, "default"),
        "2 replicas": start(folder / "replicas", [path], hparams, 2, "mirrored"),
        "2 workers": chief,
        "the other": other,
    }
    said = {way: process.communicate(timeout=300)[0] for way, process in processes.items()}
    return {way: json.loads(text.splitlines()[-1])["losses"][0] for way, text in said.items()}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["2 replicas", "2 workers"])
def test_dropout_differs_between_replicas(first_losses: dict[str, float], way: str) -> None:
    """Equal random bits would make the mean loss of equal examples that of one."""
    assert first_losses[way] != pytest.approx(first_losses["one device"], rel=1e-3)
