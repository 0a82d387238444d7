"""Processes that are forked from one that computes: an error in the place of a process that hangs."""

import subprocess
import sys
import textwrap

import pytest

from t2t_revival.utils import processes
from tests.support.forked import in_child


@pytest.fixture
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this process seem never to have computed."""
    monkeypatch.setattr(processes, "_in_use", False)
    monkeypatch.setattr(processes, "_tensorflow_computes", lambda: False)


@pytest.mark.usefixtures("unused")
def test_a_child_of_a_process_that_has_computed_cannot() -> None:
    processes.start_computing()
    processes.start_computing()
    said = in_child(processes.start_computing)
    assert said == (
        "error: this process was forked from one that used TensorFlow or JAX, and would hang: start "
        "processes by multiprocessing's spawn, or load models only after the fork (gunicorn: no --preload)"
    )
    assert in_child(lambda: in_child(processes.start_computing)) == said


@pytest.mark.usefixtures("unused")
def test_a_child_of_a_process_that_has_not_computed_can() -> None:
    assert in_child(processes.start_computing) == "None"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "said"),
    [
        pytest.param("tf.config.list_physical_devices()", "can", marks=pytest.mark.nightly),
        ("tf.constant(1) + 1", "this process was forked from one that used TensorFlow or JAX"),
    ],
)
def test_others_who_use_tensorflow_are_noticed(before: str, said: str) -> None:
    script = f"""
        import os, tensorflow as tf
        from t2t_revival import T2TError
        from t2t_revival.utils import processes
        {before}
        if not os.fork():
            try:
                processes.start_computing()
                print("can", flush=True)
            except T2TError as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert run.stdout.startswith(said)
