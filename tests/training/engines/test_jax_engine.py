"""Trainings under JAX: as TensorFlow's, on any number of devices, in a process without TensorFlow."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2t_revival import RunConfig
from t2t_revival.checkpoints.directory import list_checkpoints
from tests.support.backend_process import IN_JAX
from tests.support.copy_shards import HPARAMS, VOCAB, assert_same, write_shards
from tests.support.copy_task import final_arrays, train, train_and_list_losses
from tests.support.tiny_models import VARIATIONS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not find_spec("jax"), reason="needs JAX")]

TRAININGS = Path(__file__).parents[2] / "support" / "jax_trainings.py"
ROOT = Path(__file__).parents[3]
STEPS = 20
EXAMPLES = 48  # all of them in each update, so that only the way they are shared differs
TOKENS = 9 * EXAMPLES
PLAIN = {"layer_prepostprocess_dropout": 0.0, "max_length": 9, "min_length_bucket": 9, "batch_size": TOKENS}
PACKED, PACKED_ROWS = {"packed": True}, {"max_length": 27, "batch_size": 27 * 16}
DROPOUT = {"batch_size": 9 * 12, "layer_prepostprocess_dropout": 0.1, "train_steps": 8, "ema_decay": 0.9}
SHARED = (
    "2 devices",
    "8 devices",
    "4 devices, sharded",
    "2 devices, 2 micro-batches",
    "1 devices, blocks",
    "4 devices, blocks",
)
VARIED: dict[str, dict[str, Any]] = {  # models and optimizers that are not the paper's
    "modern, biases, muon": {**VARIATIONS["modern"], **VARIATIONS["biases"], "optimizer": "muon"},
    "relative, adafactor": {
        **VARIATIONS["relative"],
        "optimizer": "adafactor",
        "learning_rate_constant": 3.0,
    },
}
Outcome = dict[str, Any]


class Jobs:
    """Trainings on one corpus for a process under JAX, in which each may have up to 8 devices."""

    def __init__(self, folder: Path, shards: list[Path]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._shards = folder, [str(shard) for shard in shards]
        self._jobs: list[dict[str, Any]] = []

    def add(self, name: str, hparams: dict[str, Any], begun: Path | None = None, **job: Any) -> Path:
        """Adds a training, which goes on where `begun` stopped; `job` has other fields."""
        out, config = self.folder / name, {"strategy": "mirrored", **job.pop("config", {})}
        own: dict[str, Any] = {"output_dir": str(out), "shards": self._shards, "devices": 1, "config": config}
        steps = {}
        if begun:
            shutil.copytree(begun, out)
            steps = {"train_steps": 3 + STEPS}
        self._jobs.append({**own, "hparams": {**PLAIN, **steps, **hparams}, **job})
        return out

    def start(self, **environment: str) -> subprocess.Popen[str]:
        """Starts the process."""
        path = self.folder / f"jobs-{environment.get('JAX_PROCESS_ID', '')}.json"
        path.write_text(json.dumps(self._jobs), encoding="utf-8")
        flags = "--xla_force_host_platform_device_count=8"
        own = {"KERAS_BACKEND": "jax", "XLA_FLAGS": flags, "PYTHONPATH": str(ROOT), **environment}
        return subprocess.Popen(
            [sys.executable, str(TRAININGS), str(path)],
            env={**os.environ, **IN_JAX, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self) -> dict[str, Outcome]:
        """Runs all, and returns what is said of each by its name."""
        outcomes = finished(self.start())
        names = [Path(job["output_dir"]).name for job in self._jobs]
        return dict(zip(names, outcomes, strict=True))


def finished(process: subprocess.Popen[str]) -> list[Outcome]:
    """Waits for a process: what it printed of each training."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_shards(tmp_path_factory.mktemp("copy"), shards=1, examples=EXAMPLES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jax")


@pytest.fixture(scope="module")
def tensorflow(copies: list[Path], folder: Path) -> tuple[Path, list[float]]:
    """A run of TensorFlow after 3 updates, and the losses of 20 further ones."""
    first = folder / "tensorflow"
    hparams = HPARAMS.replace(**PLAIN, train_steps=3)
    train(copies, hparams, VOCAB, RunConfig(first, strategy="default"))
    whole = shutil.copytree(first, folder / "tensorflow, on")
    config = RunConfig(whole, strategy="default", log_steps=1)
    losses, _ = train_and_list_losses(copies, hparams.replace(train_steps=3 + STEPS), VOCAB, config)
    return first, losses


@pytest.fixture(scope="module")
def outcomes(copies: list[Path], folder: Path, tensorflow: tuple[Path, list[float]]) -> dict[str, Outcome]:
    """Trainings that one process makes."""
    jobs, begun = Jobs(folder / "jobs", copies), tensorflow[0]
    jobs.add("1 devices", {}, begun)
    quarter = {"batch_size": TOKENS // 4}
    jobs.add("4 devices", quarter, begun, devices=4)
    jobs.add("dropout", DROPOUT)
    jobs.add("dropout, in parts", {**DROPOUT, "train_steps": 3})
    jobs.add("dropout, in parts", DROPOUT)
    jobs.add("packed", PACKED_ROWS, begun, config={"packed": None})
    jobs.add("packed, 4 devices", {**PACKED_ROWS, "batch_size": 27 * 4}, begun, devices=4, config=PACKED)
    bad = {"weights": {"2": float("nan"), "4": float("inf"), "5": 1e25}}
    jobs.add("bad batches", {"train_steps": 4}, config={"max_nonfinite_steps": 4}, **bad)
    return jobs.run()


@pytest.fixture(scope="module")
def more_outcomes(
    copies: list[Path], folder: Path, tensorflow: tuple[Path, list[float]], outcomes: dict[str, Outcome]
) -> dict[str, Outcome]:
    """These trainings, and those that a pull request need not run."""
    jobs, begun = Jobs(folder / "more jobs", copies), tensorflow[0]
    for count in (2, 8):
        jobs.add(f"{count} devices", {"batch_size": TOKENS // count}, begun, devices=count)
    quarter = {"batch_size": TOKENS // 4}
    parts = {**quarter, "effective_batch_size": TOKENS}
    jobs.add("2 devices, 2 micro-batches", parts, begun, devices=2)
    jobs.add("4 devices, sharded", quarter, begun, devices=4, config={"shard_optimizer": True})
    for count in (1, 4):
        own = {"batch_size": TOKENS // count}
        jobs.add(f"{count} devices, blocks", own, begun, devices=count, block=20)
    jobs.add("dropout, 4 devices", {**DROPOUT, "batch_size": 9 * 12 // 4}, devices=4)
    half = {"precision": "mixed_float16"}
    jobs.add("float16", {"train_steps": 6}, config=half)
    small = {str(number): 1e-7 for number in range(1, 21)}  # as of updates of many tokens
    for name, config in {"float32": {}, "float16": half}.items():
        jobs.add(f"{name}, small weights", {"train_steps": 20}, config=config, weights=small)
    jobs.add("float16, overflow", {"train_steps": 2}, config=half, weights={"2": 3e4})
    buckets = {"min_length_bucket": 4, "length_bucket_step": 1.5, "batch_size": 36, "train_steps": 30}
    jobs.add("buckets", buckets, config={"log_steps": 10})
    return outcomes | jobs.run()


def test_losses_are_tensorflows(outcomes: dict[str, Outcome], tensorflow: tuple[Path, list[float]]) -> None:
    """Weights, moments, the place in the data and the step come from TensorFlow's checkpoint."""
    losses = outcomes["1 devices"]["losses"]
    assert len(losses) == STEPS
    np.testing.assert_allclose(losses, tensorflow[1], rtol=1e-4)
    assert losses[-1] < losses[0] - 0.1, "it learns"
    assert outcomes["1 devices"]["compilations"] == 1


def test_losses_of_packed_batches_are_tensorflows(
    outcomes: dict[str, Outcome], copies: list[Path], folder: Path, tensorflow: tuple[Path, list[float]]
) -> None:
    """Rows of 27 tokens, which are packed under JAX where nobody says so; `begun` was trained without."""
    hparams = HPARAMS.replace(**{**PLAIN, **PACKED_ROWS}, train_steps=3 + STEPS)
    begun = shutil.copytree(tensorflow[0], folder / "tensorflow, packed")
    config = RunConfig(begun, strategy="default", log_steps=1, packed=True)
    expected, _ = train_and_list_losses(copies, hparams, VOCAB, config)
    np.testing.assert_allclose(outcomes["packed"]["losses"], expected, rtol=1e-4)
    np.testing.assert_allclose(outcomes["packed, 4 devices"]["losses"], expected, rtol=1e-4)
    assert outcomes["packed"]["compilations"] == 1


@pytest.mark.nightly
@pytest.mark.parametrize("name", VARIED)
def test_losses_of_other_models_and_optimizers_are_tensorflows(
    copies: list[Path], tmp_path: Path, name: str
) -> None:
    """Four devices that share the moments are included."""
    begun, hparams = tmp_path / "begun", HPARAMS.replace(**PLAIN, **VARIED[name])
    train(copies, hparams.replace(train_steps=3), VOCAB, RunConfig(begun, strategy="default"))
    config = RunConfig(shutil.copytree(begun, tmp_path / "whole"), strategy="default", log_steps=1)
    losses, _ = train_and_list_losses(copies, hparams.replace(train_steps=3 + STEPS), VOCAB, config)
    jobs, quarter = Jobs(tmp_path / "jobs", copies), {**VARIED[name], "batch_size": TOKENS // 4}
    jobs.add("one", VARIED[name], begun)
    jobs.add("four", quarter, begun, devices=4, config={"shard_optimizer": True})
    assert losses[-1] < losses[0] - 0.1, "it learns"
    for outcome in jobs.run().values():
        np.testing.assert_allclose(outcome["losses"], losses, rtol=2e-3)


def assert_equal(folder: Path, outcomes: dict[str, Outcome], name: str) -> None:
    """Checks that a training on several devices, or in blocks, is the same as on one."""
    np.testing.assert_allclose(outcomes[name]["losses"], outcomes["1 devices"]["losses"], rtol=1e-5)
    place = "jobs" if name == "4 devices" else "more jobs"
    expected, found = final_arrays(folder / "jobs" / "1 devices"), final_arrays(folder / place / name)
    assert expected.keys() == found.keys()
    for key, array in expected.items():
        np.testing.assert_allclose(found[key], array, atol=2e-5, err_msg=key)


def test_four_devices_are_one(outcomes: dict[str, Outcome], folder: Path) -> None:
    assert_equal(folder, outcomes, "4 devices")


@pytest.mark.nightly
@pytest.mark.parametrize("name", SHARED)
def test_devices_are_equal(more_outcomes: dict[str, Outcome], folder: Path, name: str) -> None:
    assert_equal(folder, more_outcomes, name)


@pytest.mark.nightly
def test_dropout_is_that_of_one_device(more_outcomes: dict[str, Outcome]) -> None:
    found, expected = more_outcomes["dropout, 4 devices"]["losses"], more_outcomes["dropout"]["losses"]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_resumed_run_ends_with_the_same_bits(outcomes: dict[str, Outcome], folder: Path) -> None:
    """Dropout's random states and the moving averages of the weights, too."""
    expected, found = (final_arrays(folder / "jobs" / one) for one in ("dropout", "dropout, in parts"))
    assert any(name.startswith("ema/") for name in expected)
    assert_same(found, expected)


def test_tensorflow_goes_on_where_jax_stopped(
    outcomes: dict[str, Outcome], copies: list[Path], folder: Path, tensorflow: tuple[Path, list[float]]
) -> None:
    hparams = HPARAMS.replace(**PLAIN, train_steps=3 + STEPS + 5)
    found = []
    for name in ("jobs/1 devices", "tensorflow, on"):
        out = shutil.copytree(folder / name, folder / f"{name} and on")
        config = RunConfig(out, strategy="default", log_steps=1)
        found.append(train_and_list_losses(copies, hparams, VOCAB, config)[0])
    assert len(found[0]) == 5
    np.testing.assert_allclose(*found, rtol=1e-3)


def test_bad_batches_are_skipped(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["bad batches"]
    assert (found["step"], found["skipped"]) == (4, 3)
    assert [note.partition(":")[0] for note in found["notes"]] == [
        "update 2 skipped",
        "update 3 skipped",
        "update 3 skipped",
    ]
    assert "loss is nan (1 in a row, 1 in all)" in found["notes"][0]
    assert "gradients are not finite (2 in a row, 3 in all)" in found["notes"][2]


@pytest.mark.nightly
def test_float16_has_small_gradients_too(more_outcomes: dict[str, Outcome]) -> None:
    """Without the scale, those of the decoder's output would be 0; moments make up for the weights."""
    expected, found = (more_outcomes[f"{name}, small weights"]["losses"] for name in ("float32", "float16"))
    assert expected[-1] < 0.9 * expected[0]
    np.testing.assert_allclose(found, expected, rtol=5e-3)


@pytest.mark.nightly
def test_float16_scales_the_loss(more_outcomes: dict[str, Outcome]) -> None:
    assert more_outcomes["float16"]["losses"][-1] < more_outcomes["float16"]["losses"][0]
    assert more_outcomes["float16, overflow"]["overflows"] >= 1
    assert (
        "scaled gradients overflow float16; loss scale lowered to"
        in more_outcomes["float16, overflow"]["notes"][0]
    )


@pytest.mark.nightly
def test_each_bucket_is_compiled_once(more_outcomes: dict[str, Outcome]) -> None:
    assert more_outcomes["buckets"]["compilations"] == 3, "buckets of up to 4, 6 and 9 tokens"


@pytest.mark.nightly
def test_two_processes_are_one(
    copies: list[Path], folder: Path, outcomes: dict[str, Outcome], tmp_path: Path
) -> None:
    jobs = Jobs(tmp_path, copies)
    job: dict[str, Any] = {"config": {"strategy": "multi_worker"}, "devices": None}
    out = jobs.add("out", {"batch_size": TOKENS // 2}, folder / "tensorflow", **job)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    processes = [
        jobs.start(
            JAX_COORDINATOR_ADDRESS=f"127.0.0.1:{port}",
            JAX_NUM_PROCESSES="2",
            JAX_PROCESS_ID=str(number),
            XLA_FLAGS="",
        )
        for number in range(2)
    ]
    (chief,), (other,) = (finished(process) for process in processes)
    assert chief["losses"] == other["losses"]
    np.testing.assert_allclose(chief["losses"], outcomes["1 devices"]["losses"], rtol=1e-5)
    assert [one.step for one in list_checkpoints(out)] == [3, 3 + STEPS]
