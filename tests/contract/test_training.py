"""Trainings of eleven kinds end as they did when the contract was written: see `trainings`."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from tests.contract.trainings import (
    CONTRACT,
    CURVES,
    KINDS,
    RESUMED,
    STEPS,
    STOP,
    STORED,
    Trainings,
    curve,
    last_arrays,
    result,
)
from tests.support import commands
from tests.support.copy_shards import assert_same

pytestmark = pytest.mark.slow
needs_jax = pytest.mark.skipif(not find_spec("jax"), reason="needs JAX")
WITH_JAX = ("accumulated", "mixture", "guided alignment", "weighted sentences")  # no random numbers


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    return Trainings(tmp_path_factory.mktemp("trainings"))


@pytest.fixture(scope="module")
def contract() -> dict[str, Any]:
    return json.loads(CONTRACT.read_text(encoding="utf-8"))


def assert_agrees(found: dict[str, Any], expected: dict[str, Any], precise: bool = True) -> None:
    """Tolerances are 20 times what another library of matrix products changes, without oneDNN for example."""
    of_losses, of_arrays = (1e-4, 1e-4) if precise else (1e-2, 0.5)
    assert found["updates"] == expected["updates"]
    for name in CURVES:
        np.testing.assert_allclose(found[name], expected[name], rtol=of_losses, err_msg=name)
    assert found["arrays"].keys() == expected["arrays"].keys()
    for name, (norm, *numbers) in expected["arrays"].items():
        np.testing.assert_allclose(found["arrays"][name][0], norm, rtol=of_arrays, err_msg=f"norm of {name}")
        np.testing.assert_allclose(found["arrays"][name][1:], numbers, atol=of_arrays, rtol=0, err_msg=name)


@pytest.mark.parametrize("name", KINDS)
def test_a_training_ends_as_it_did(trainings: Trainings, contract: dict[str, Any], name: str) -> None:
    assert_agrees(result(trainings.of_kind(name)), contract[name], KINDS[name].precise)


def test_bfloat16_is_not_float32(trainings: Trainings) -> None:
    losses = [np.array(curve(trainings.of_kind(name), "train"))[:, 0] for name in ("plain", "bfloat16")]
    assert abs(losses[1] / losses[0] - 1).max() > 3e-4


def test_a_training_resumed_in_the_middle_ends_with_the_same_bits(
    trainings: Trainings, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = trainings.of_kind(RESUMED)
    for steps in (STOP, STEPS):
        resumed = trainings.train(KINDS[RESUMED], "resumed", steps)
    assert (
        f"weights of {resumed}, not of {trainings.start.parent}: the run has begun" in capsys.readouterr().err
    )
    assert curve(resumed, "train") == curve(whole, "train")
    found, expected = last_arrays(resumed), last_arrays(whole)
    for arrays in (found, expected):
        del arrays["meta"]  # which has the time
    assert_same(found, expected)


def test_a_stored_training_resumes_to_the_same_end(
    trainings: Trainings, contract: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """From data and output_dir that the commit before the redesign made; then its model decodes."""
    stored = shutil.copytree(STORED, trainings.folder / "stored")
    kind = replace(KINDS[RESUMED], data=stored / "data")
    found = result(trainings.train(kind, stored.name))
    assert "/data, the same training data" in capsys.readouterr().err
    found["dev"] = found["dev"][1:]  # the first is of the end of the stored part
    assert_agrees(found, contract[RESUMED])
    decoded = commands.run("t2t-decoder", f"--output_dir={stored}", f"--data_dir={stored / 'data'}")
    assert "on dev, 12 sentences" in decoded.stdout


@needs_jax
def test_jax_trains_and_resumes_to_the_same_end(trainings: Trainings, contract: dict[str, Any]) -> None:
    for steps in (STOP, STEPS):
        resumed = trainings.train(KINDS["plain"], "with JAX", steps, "jax")
    found = result(resumed)
    found["dev"] = found["dev"][1:]  # the first is of the end of the first part
    assert_agrees(found, contract["plain"])


@needs_jax
@pytest.mark.nightly
@pytest.mark.parametrize("name", WITH_JAX)
def test_jax_trains_other_kinds_to_the_same_end(
    trainings: Trainings, contract: dict[str, Any], name: str
) -> None:
    found = result(trainings.train(KINDS[name], f"{name} with JAX", backend="jax"))
    assert_agrees(found, contract[name])
