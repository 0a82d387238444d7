"""benchmarks/gpu_train.py, all of it on a CPU."""

import json
import os
import sys

import gpu_train
import pytest

from tests.support.backend_process import run_with_backend


@pytest.fixture
def no_tensorflow(tmp_path):
    """Environment with JAX, and a module of TensorFlow's name that takes note of whoever asks for it."""
    pytest.importorskip("jax")
    asked, blocked = tmp_path / "asked", tmp_path / "blocked"
    blocked.mkdir()
    code = f"open({str(asked)!r}, 'w').close()\nraise ImportError('no TensorFlow here')\n"
    (blocked / "tensorflow.py").write_text(code)
    path = os.pathsep.join(filter(None, (str(blocked), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path}


@pytest.mark.slow
@pytest.mark.nightly
def test_speeds_on_a_cpu_without_tensorflow(tmp_path, no_tensorflow):
    pytest.importorskip("torch")
    out = tmp_path / "gpu.json"
    contestants = ["jax", "torch", "torch-compiled"]
    command = [sys.executable, gpu_train.__file__, "--tiny", f"--contestants={','.join(contestants)}"]
    done = run_with_backend([*command, f"--out={out}"], "jax", **no_tensorflow)
    assert done.returncode == 0, done.stderr[-3000:]
    figures = json.loads(out.read_text())
    assert [found["contestant"] for found in figures["results"]] == contestants
    for found in figures["results"]:
        assert (found["failed"], len(found["speeds"])) == ("", gpu_train.ROUNDS)
        assert 2 < found["loss"] < 8
        assert f"| base | {found['contestant']} | 64 | " in done.stdout
    assert figures["device"] == "cpu"
    assert figures["libraries"].keys() >= {"jax", "keras", "torch"}
    assert not (tmp_path / "asked").exists()


@pytest.mark.slow
@pytest.mark.nightly
def test_what_has_no_time_and_what_has_no_gpu(no_tensorflow):
    """The first is a row of the table, the second an error."""
    command = [sys.executable, gpu_train.__file__]
    done = run_with_backend(
        [*command, "--tiny", "--contestants=jax", "--minutes=0.001"], "jax", **no_tensorflow
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "| base | jax | 64 | no answer in time |" in done.stdout
    done = run_with_backend(command, "jax", **no_tensorflow)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: JAX sees no GPU; --tiny tries the script without one\n"
