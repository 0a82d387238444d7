"""Devices and processes under JAX."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any

import jax

from t2t_revival.errors import T2TError

COORDINATOR, PROCESSES, PROCESS = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"
TIMEOUT = "T2T_COORDINATOR_TIMEOUT"  # seconds
MORE_SECONDS = 3600  # that JAX itself would wait
CONNECT_SECONDS = 5.0  # of one try
HELP = (
    f"set {COORDINATOR}=HOST:PORT of the first process, {PROCESSES} and {PROCESS} for each, or start them by "
    "Slurm or Open MPI"
)
LOST = (  # texts in errors of a process whose connection to another one is gone
    *("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "Connection closed", "Connection reset", "Gloo"),
)


def devices_of(strategy: str) -> list[jax.Device]:
    """Returns the devices of a strategy's name, see `RunConfig`; without a GPU, "mirrored" takes all CPUs."""
    if strategy in ("mirrored", "multi_worker"):
        return jax.devices()
    gpus = [device for device in jax.local_devices() if device.platform != "cpu"]
    return gpus if strategy == "auto" and len(gpus) > 1 else jax.local_devices()[:1]


def device_memory(device: jax.Device) -> int:
    """Returns the memory of a device in bytes; of a CPU, that of the machine."""
    statistics = device.memory_stats() or {}
    return statistics.get("bytes_limit") or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def join_processes() -> None:
    """Waits for the other processes of a training.

    Raises:
        T2TError: the environment does not name them, or they do not answer in time.
    """
    if "TF_CONFIG" in os.environ and COORDINATOR not in os.environ:
        raise T2TError(f"TF_CONFIG is TensorFlow's, and KERAS_BACKEND is jax: {HELP}")
    seconds = int(os.environ.get(TIMEOUT, "300"))
    try:
        own: dict[str, Any] = {
            "coordinator_address": os.environ.get(COORDINATOR),
            "num_processes": int(os.environ[PROCESSES]) if PROCESSES in os.environ else None,
            "process_id": int(os.environ[PROCESS]) if PROCESS in os.environ else None,
        }
        if own["coordinator_address"] and own["process_id"]:
            _wait_for(own["coordinator_address"], seconds)
        _initialize(own, seconds)
    except ValueError as error:
        raise T2TError(f"--strategy=multi_worker: {str(error).splitlines()[0]}; {HELP}") from error
    except (OSError, RuntimeError) as error:
        address = os.environ.get(COORDINATOR, "the coordinator")
        raise T2TError(
            f"--strategy=multi_worker: not all processes have met at {address} within {seconds} s: start the "
            f"same command on all machines, and check {COORDINATOR}"
        ) from error


def _wait_for(address: str, seconds: float) -> None:
    """Waits until a server listens there: JAX would end the process without an error, but a trace.

    Raises:
        OSError: none does within so many seconds.
        ValueError: the address is not HOST:PORT.
    """
    host, _, port = address.rpartition(":")
    end = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS):
                return
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(CONNECT_SECONDS / 10)


def _initialize(own: dict[str, Any], seconds: float) -> None:
    """Starts JAX's service, or client, in a thread: at the end of its own time, it would end this process.

    Raises:
        RuntimeError: the other processes have not come within so many seconds; and as JAX.
    """
    errors: list[Exception] = []

    def initialize() -> None:
        try:
            jax.distributed.initialize(**own, initialization_timeout=int(seconds) + MORE_SECONDS)
        except Exception as error:  # for the thread that waits
            errors.append(error)

    thread = threading.Thread(target=initialize, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if thread.is_alive():
        raise RuntimeError("the other processes have not come")
