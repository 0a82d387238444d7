"""benchmarks/gpu_train.py: what it counts, and a run of it on a CPU under both backends."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from t2t_revival.errors import T2TError
from tests.support.backend_process import run_with_backend

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = BENCHMARKS / "gpu_train.py"
VARIATIONS = Path(__file__).parents[1] / "support" / "gpu_variations_in_jax.py"
sys.path.insert(0, str(BENCHMARKS))

import gpu_train  # noqa: E402
from gpu import examples  # noqa: E402
from gpu.figures import ModelSpeed, Round, table  # noqa: E402

TINY = [
    "--sizes=tiny",
    "--hparams=num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2",
    "--vocab=50",
    "--tokens=64",
    "--length=16",
    "--warmup=1",
    "--steps=2",
    "--rounds=2",
    "--matmul_size=64",
]
needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed: pip install t2t_revival[jax]"
)


def test_full_sentences():
    batches = examples.constant(100, 12, 50)
    assert {side.shape for batch in batches for side in batch} == {(8, 12)}
    for batch in batches:
        assert (batch.targets[:, -1] == 1).all()
        assert batch.targets[:, :-1].min() >= 2
        assert batch.inputs.max() < 50
        np.testing.assert_allclose(batch.weights, 1 / 96)
        assert batch.target_lengths.tolist() == batch.source_lengths.tolist() == [12] * 8


def test_mixed_sentences_have_few_shapes():
    batches = examples.mixed(4096, 64, 50)
    shapes = {batch.targets.shape for batch in batches}
    assert shapes == {(512, 8), (256, 16), (128, 32), (64, 64)}
    for batch in batches:
        assert batch.inputs.shape == batch.targets.shape
        for side, lengths in ((batch.inputs, batch.source_lengths), (batch.targets, batch.target_lengths)):
            ends = side[np.arange(len(side)), lengths - 1]
            assert (ends == 1).all()
            assert ((side == 0) == (np.arange(side.shape[1]) >= lengths[:, None])).all()
        np.testing.assert_array_equal(batch.weights > 0, batch.targets != 0)
        assert batch.weights.sum() == pytest.approx(1, rel=1e-5)
    full = sum(batch.target_lengths.sum() for batch in batches) / sum(batch.targets.size for batch in batches)
    assert 0.5 < full < 0.9


@pytest.mark.parametrize("make", [examples.constant, examples.mixed])
def test_a_batch_smaller_than_a_sentence(make):
    with pytest.raises(T2TError, match="micro-batches of 10 tokens are shorter than a sentence of 12"):
        make(10, 12, 50)


def measured(**changes):
    rounds = [Round(seconds, 20_000, 25_000, 4 * 10**14) for seconds in (2.0, 1.0, 4.0)]
    values = {"updates": 10, "matmul": 8e14, "compiling": 9.0, "loss": 7.0, "peak_memory": 3 * 2**29}
    made = ModelSpeed("big", "", "GPU", "Keras", 1, rounds=rounds, **values)
    return ModelSpeed(**{**vars(made), **changes})


def test_the_table_has_medians_and_spread():
    lines = table([measured(), measured(variation="norm=derived", peak_memory=None)]).splitlines()
    row = "| 10,000 (5,000-20,000) | 12,500 | 200.0 | 200.0 | 25.0% of 800 |"
    assert lines[2] == f"| big {row} 1.5 |"
    assert lines[3] == f"| big norm=derived {row} ? |"
    assert len({line.count("|") for line in lines}) == 1


def test_the_same_choices_are_offered_as_there_are():
    from gpu import variations

    for name, choices in variations.CHOICES.items():
        assert gpu_train.CHOICES[name] == (variations.OURS, *choices)


@pytest.mark.parametrize("flag", ["--try=norm=fast", "--try=batch=1", "--steps=0", "--precision=float16"])
def test_wrong_flags(capsys, flag):
    with pytest.raises(SystemExit):
        gpu_train.parse_flags([flag])
    assert flag.split("=")[0] in capsys.readouterr().err


def test_a_checkout_that_is_not_installed():
    """Without any site-packages: hparams/ and problems/ stand at the top."""
    code = (
        f"import sys; sys.path[:0] = [{str(BENCHMARKS)!r}]\n"
        "import gpu_train; gpu_train.make_importable()\n"
        "from t2t_revival import registry; print(registry.hparams('big').hidden_size)\n"
        "import t2t_revival.training"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == "1024\n", done.stderr


def run(folder, *flags, **environment):
    found = folder / "found.json"
    command = [sys.executable, str(SCRIPT), *TINY, f"--json={found}", *flags]
    done = run_with_backend(command, "jax", **environment)
    return done, json.loads(found.read_text())["runs"] if found.exists() else []


def check(done, runs):
    """64 positions of full sentences an update, two updates a round."""
    assert done.returncode == 0, done.stderr[-3000:]
    assert "| tiny |" in done.stdout
    for one in runs:
        check_run(one)


def check_run(one):
    assert [(r["tokens"], r["positions"]) for r in one["rounds"]] == [(128, 128)] * 2
    assert 2 < one["loss"] < 8
    assert one["matmul"] > 0
    assert one["device"] == "CPU"


@needs_jax
@pytest.mark.slow
def test_under_jax_without_tensorflow(tmp_path):
    """A module of its name takes note of whoever asks for it."""
    asked = tmp_path / "asked"
    code = f"open({str(asked)!r}, 'w').close()\nraise ImportError('no TensorFlow here')\n"
    (tmp_path / "tensorflow.py").write_text(code)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    flags = ["--allow_cpu", "--accumulate=2", "--try", "random=rbg"]
    done, runs = run(tmp_path, *flags, PYTHONPATH=path)
    check(done, runs)
    assert [r["variation"] for r in runs] == ["", "random=rbg"]
    assert "JAX" in runs[0]["versions"]
    assert not asked.exists()


@pytest.mark.slow
def test_under_tensorflow(tmp_path):
    found = tmp_path / "found.json"
    assert gpu_train.main([*TINY, "--allow_cpu", "--xla=no", f"--result={found}"]) == 0
    run = json.loads(found.read_text())
    check_run(run)
    assert "TensorFlow" in run["versions"]


@pytest.mark.slow
@needs_jax
def test_no_gpu(tmp_path):
    done, runs = run(tmp_path)
    assert (done.returncode, runs) == (1, [])
    error, skipped = done.stderr.splitlines()[-2:]
    assert "sees no GPU: set KERAS_BACKEND to tensorflow or jax" in error
    assert skipped == "tiny: failed, skipped"


@needs_jax
@pytest.mark.slow
def test_variations_compute_the_same():
    done = run_with_backend([sys.executable, str(VARIATIONS)], "jax")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the same" in done.stdout
