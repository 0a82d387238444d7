"""Processes of a training under JAX that do not meet."""

from __future__ import annotations

import threading
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest

from t2t_revival import T2TError

pytestmark = pytest.mark.skipif(not find_spec("jax"), reason="needs JAX")


@pytest.fixture
def jax_devices() -> ModuleType:
    return import_module("t2t_revival.training.engines.jax_engine")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"TF_CONFIG": "{}"}, "TF_CONFIG is TensorFlow's, and KERAS_BACKEND is jax"),
        (
            {"JAX_COORDINATOR_ADDRESS": "127.0.0.1:9", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"},
            "not all processes have met at 127.0.0.1:9 within 0 s: start the same command on all machines",
        ),
        ({"JAX_COORDINATOR_ADDRESS": "here", "JAX_PROCESS_ID": "1"}, "--strategy=multi_worker: .*JAX_COORD"),
        ({"JAX_COORDINATOR_ADDRESS": "127.0.0.1:9", "JAX_PROCESS_ID": "first"}, "invalid literal.*first"),
    ],
)
def test_processes_that_do_not_meet(
    jax_devices: ModuleType, variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax_devices, "CONNECT_SECONDS", 0.1)
    for name, value in {jax_devices.TIMEOUT: "0", **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(T2TError, match=message):
        jax_devices.join_processes()


def test_the_first_process_does_not_wait_for_ever(
    jax_devices: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX itself would end the process, with a trace, when its own time is over."""
    came = threading.Event()
    monkeypatch.setattr(jax_devices.jax.distributed, "initialize", lambda **_: came.wait())
    variables = {"JAX_COORDINATOR_ADDRESS": "127.0.0.1:9", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "0"}
    for name, value in {jax_devices.TIMEOUT: "0", **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(T2TError, match=r"not all processes have met at 127\.0\.0\.1:9 within 0 s"):
        jax_devices.join_processes()
    came.set()


def test_any_error_of_jax_is_one(jax_devices: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def initialize(**_: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(jax_devices.jax.distributed, "initialize", initialize)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(T2TError, match="not all processes have met"):
        jax_devices.join_processes()


@pytest.mark.parametrize("several", [False, True])
def test_a_device_whose_memory_is_full_is_said(jax_devices: ModuleType, several: bool) -> None:
    """In each process: the others lose the one that ends."""
    engine_class = import_module("t2t_revival.training.engines.jax_engine").JaxEngine
    engine = object.__new__(engine_class)  # without devices
    engine.several = several
    full = jax_devices.jax.errors.JaxRuntimeError(
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate"
    )
    assert str(engine.translate(full)).startswith("out of memory: lower batch_size")
    other = jax_devices.jax.errors.JaxRuntimeError("INTERNAL: no such thing")
    assert engine.translate(other) is other
