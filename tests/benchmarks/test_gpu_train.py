"""benchmarks/gpu_train.py: with contestants that compute nothing, and all of it on a CPU."""

import json
import os
import signal
import sys
from pathlib import Path

import gpu_train
import pytest
from gpu import training
from gpu.record import Record

from tests.support.backend_process import run_with_backend
from tests.support.commands import run

SCRIPT = Path(gpu_train.__file__)
VARIATIONS = Path(__file__).parents[1] / "support" / "gpu_variations_in_jax.py"


def test_a_record_that_was_killed_while_writing(tmp_path):
    path = tmp_path / "figures.jsonl"
    Record(path, device="G").add("speed", size="base", tokens=1)
    with path.open("a") as file:
        file.write('{"piece": "spe')
    record = Record(path)
    record.add("speed", size="base", tokens=2, failed="no luck")
    again = Record(path)
    assert [line["tokens"] for line in again.all("speed", size="base")] == [1, 2]
    assert again.find("speed", tokens=1)["device"] == "G"
    assert again.find("speed", tokens=3) is None
    again.forget_failures()
    assert again.find("speed", tokens=2) is None
    assert len(Record(path).lines) == 2


STOPPABLE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
time.sleep(60)
"""


def test_a_command_that_outlasts_its_time_is_asked_to_stop(tmp_path):
    """It is started with SIGTERM blocked, so that none comes before its handler."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        status, seconds = training.run([sys.executable, "-c", STOPPABLE], tmp_path / "log", 0.5, 50.0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert (status, seconds < 50) == (143, True)


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
    out = tmp_path / "out"
    command = [sys.executable, str(SCRIPT), "--tiny", f"--out={out}", "--most_tokens=64", "--minutes=10"]
    done = run_with_backend(command, "jax", **no_tensorflow)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in (out / "figures.jsonl").read_text().splitlines()]
    assert [line["piece"] for line in lines] == ["ceiling", *["speed"] * 3, "compare"]
    for line in lines[1:4]:
        assert "failed" not in line, line
        assert 2 < line["loss"] < 8
        assert (line["device"], len(line["speeds"])) == ("CPU", 2)
    assert lines[4]["tokens"] == {"ours": 64, "torch": 64, "torch-compiled": 64}
    assert not (tmp_path / "asked").exists()
    again = run_with_backend(command, "jax", **no_tensorflow)
    assert len((out / "figures.jsonl").read_text().splitlines()) == len(lines)
    assert again.stdout == run_with_backend([*command, "--show"], "jax").stdout
    assert "| tiny | torch-compiled | 64 |" in again.stdout


@pytest.mark.slow
@pytest.mark.nightly
def test_a_training_and_its_bleu_without_tensorflow(tmp_path, no_tensorflow):
    """The second call resumes the training of the first."""
    data_dir = tmp_path / "data"
    run("t2t-datagen", "--problem=translate_ende", "--data_source=sample", f"--data_dir={data_dir}")
    source, reference = tmp_path / "dev.en", tmp_path / "dev.de"
    source.write_text("The old dog sleeps.\n")
    reference.write_text("Der alte Hund schläft.\n")
    dev = [f"--dev_source={source}", f"--dev_reference={reference}"]
    flags = ["--tiny", f"--out={tmp_path}", f"--data_dir={data_dir}", "--minutes=10"]
    for steps, pieces in ((1, ["--pieces=train"]), (2, ["--pieces=train,score", *dev])):
        command = [sys.executable, str(SCRIPT), *flags, *pieces, "--", f"--train_steps={steps}"]
        done = run_with_backend([*command, "--eval_bleu_sentences=2"], "jax", **no_tensorflow)
        assert done.returncode == 0, done.stderr[-3000:]
    first, second, score = Record(tmp_path / "figures.jsonl").lines
    assert [(line["status"], line["last"]["step"]) for line in (first, second)] == [(0, 1), (0, 2)], second
    assert [row["step"] for row in second["dev"]] == [1, 2]
    assert score["bleu"][0].startswith("BLEU_uncased = "), score
    assert score["last"]["step"] == 2
    assert "| score |" in done.stdout


@pytest.mark.slow
@pytest.mark.nightly
def test_variations_compute_the_same():
    pytest.importorskip("jax")
    done = run_with_backend([sys.executable, str(VARIATIONS)], "jax")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the same" in done.stdout
