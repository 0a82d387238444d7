"""benchmarks/gpu_train.py: with contestants that compute nothing, and all of it on a CPU."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from t2t_revival.errors import T2TError
from tests.support.backend_process import run_with_backend

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = BENCHMARKS / "gpu_train.py"
VARIATIONS = Path(__file__).parents[1] / "support" / "gpu_variations_in_jax.py"
sys.path.insert(0, str(BENCHMARKS))

import gpu_train  # noqa: E402
from gpu import examples, speeds, training  # noqa: E402
from gpu.record import Clock, Record, TimeIsUp  # noqa: E402
from gpu.report import report  # noqa: E402
from peers.processes import Entry  # noqa: E402

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed: pip install t2t_revival[jax]"
)
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed: pip install t2t_revival[torch]"
)
FAKE = """
import time
from contestant import Contestant, Device, serve

def build(config, batches):
    rows = len(batches[0].inputs)

    def load(batches):
        nonlocal rows
        rows = len(batches[0].inputs)

    def step():
        if rows > {most_rows}:
            raise MemoryError("out of memory")
        time.sleep({seconds} + rows * 2e-4)
        return 2.5

    return Contestant("fake {seconds}", 1000, step, lambda batch: 3.0, load=load,
                      peak_memory=lambda: rows * 2**30, device=Device("G100", 80 * 2**30))

serve(build)
"""


def test_full_sentences():
    batches = examples.constant(100, 12, 50)
    assert {side.shape for batch in batches for side in batch} == {(8, 12)}
    for batch in batches:
        assert (batch.targets[:, -1] == 1).all()
        assert batch.targets[:, :-1].min() >= 2
        assert batch.inputs.max() < 50
        assert batch.target_tokens == 96


def test_mixed_sentences_have_few_shapes():
    batches = examples.mixed(4096, 64, 50)
    assert {batch.targets.shape for batch in batches} == {(512, 8), (256, 16), (128, 32), (64, 64)}
    for batch in batches:
        assert batch.inputs.shape == batch.targets.shape
        for side in batch:
            lengths = (side != 0).sum(axis=1)
            ends = side[np.arange(len(side)), lengths - 1]
            assert (ends == 1).all()
            assert ((side == 0) == (np.arange(side.shape[1]) >= lengths[:, None])).all()
    full = sum(batch.target_tokens for batch in batches) / sum(batch.targets.size for batch in batches)
    assert 0.5 < full < 0.9


@pytest.mark.parametrize("make", [examples.constant, examples.mixed])
def test_a_batch_smaller_than_a_sentence(make):
    with pytest.raises(T2TError, match="micro-batches of 10 tokens are shorter than a sentence of 12"):
        make(10, 12, 50)


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


def test_time_is_up():
    with pytest.raises(TimeIsUp, match="took more than 0 s"), Clock(60).limit(0.05):
        time.sleep(5)
    with pytest.raises(TimeIsUp, match="session is over"), Clock(0).limit(1):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.fixture(autouse=True)
def _environment():
    """Takes back what `set_environment` sets, which later tests of this process would find."""
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture
def measurement(tmp_path, monkeypatch):
    """Two contestants that sleep; "ours" is faster, and has room for 64 rows."""
    gpu_train.set_environment()
    fakes = {}
    for name, seconds, most_rows in (("ours", 0.02, 64), ("torch", 0.04, 32)):
        script = tmp_path / f"{name}.py"
        script.write_text(FAKE.format(seconds=seconds, most_rows=most_rows))
        fakes[name] = Entry(str(script), "python", "json", "bfloat16")
    monkeypatch.setattr(speeds, "CONTESTANTS", fakes)
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS / "peers"))
    flags = ["--tiny", f"--out={tmp_path}", "--contestants=ours,torch", "--most_tokens=100000"]
    args = gpu_train.parse_flags([*flags, "--most_steps=3"])
    record = Record(tmp_path / "figures.jsonl")
    record.add("ceiling", flops=1e9, speeds=[1e9], device="G100", name="JAX")
    return speeds.Measurement(args, record, Clock(60), "tiny")


def test_batches_grow_until_memory_is_full(measurement):
    record = measurement.record
    measurement.search("ours")
    measurement.search("torch")
    lines = record.all("speed", contestant="ours")
    assert [line["tokens"] for line in lines] == [64, 128, 256, 512, 1024, 2048]
    assert lines[-1]["failed"] == "MemoryError: out of memory"
    assert [line["peak_memory"] for line in lines[:-1]] == [rows * 2**30 for rows in (4, 8, 16, 32, 64)]
    assert all(line["share"] == pytest.approx(line["flops"] / 1e9) for line in lines[:-1])
    count = len(record.lines)
    measurement.search("ours")
    assert len(record.lines) == count
    measurement.compare(["ours", "torch"])
    found = record.find("compare", size="tiny")
    # 72 GiB are usable: 64 are ours, and one is kept for the other's idle process.
    assert found["tokens"] == {"ours": 1024, "torch": 64}
    assert found["ratio"] > 1
    assert found["better"] == "torch"
    table = report(Record(measurement.args.out / "figures.jsonl"))
    assert "| tiny | ours | 2,048 | MemoryError: out of memory |" in table
    for block in table.split("\n\n")[1:]:
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_a_piece_that_hangs_has_failed_and_the_others_go_on(measurement):
    measurement.args.piece_seconds = 0.05
    measurement.search("ours")
    assert measurement.record.find("speed", tokens=64)["failed"] == "took more than 0 s"


def test_a_call_that_is_over_records_nothing(measurement):
    over = speeds.Measurement(measurement.args, measurement.record, Clock(0.05), "tiny")
    with pytest.raises(TimeIsUp):
        over.search("ours")
    assert not measurement.record.all("speed")


def test_the_training_takes_the_fastest_batch_up_to_the_papers_update(measurement):
    args, record = measurement.args, measurement.record
    assert training.hparams(args, record) == args.trainer_hparams
    for tokens, speed in ((12_500, 1.0), (25_000, 2.0), (50_000, 3.0)):
        record.add("speed", size="tiny", contestant="ours", tokens=tokens, tokens_per_second=speed)
    assert training.hparams(args, record).startswith("batch_size=25000,num_hidden_layers=1,")


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


def test_the_same_choices_are_offered_as_there_are():
    from gpu import variations

    assert {name: tuple(choices) for name, choices in variations.CHOICES.items()} == gpu_train.CHOICES
    assert speeds.variation("ours:random=rbg+norm=derived") == {"random": "rbg", "norm": "derived"}
    assert speeds.variation("ours") == {}


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--contestants=ours,tf", "no contestant 'tf'; known: ours, torch"),
        ("--contestants=ours:norm=fast", "no variation 'norm=fast'; known: attention=xla"),
        ("--contestants=torch:norm=derived", "no contestant 'torch:norm=derived'"),
        ("--pieces=ceiling,speeds", "no piece 'speeds'"),
        ("--sizes=huge", "unknown hparams set 'huge'"),
        ("--rounds=0", "--rounds must be above 0"),
        ("--minutes=-1", "--minutes must be above 0"),
        ("--tokens=10", "--tokens=10 is less than a sentence"),
        ("--data_dir=/nowhere", "--data_dir=/nowhere does not exist"),
        ("--dev_source=/nowhere", "need each other"),
        ("--hparams=depth=1", "unknown hparam 'depth'"),
        ("--lengths=long", "invalid choice: 'long'"),
    ],
)
def test_wrong_flags(tmp_path, capsys, flag, message):
    with pytest.raises(SystemExit) as exit_:
        gpu_train.main([f"--out={tmp_path / 'out'}", flag])
    assert exit_.value.code == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert message in error
    assert not (tmp_path / "out").exists()


def test_a_checkout_that_is_not_installed():
    """Without any site-packages: hparams/ and problems/ stand at the top."""
    code = (
        f"import sys; sys.path[:0] = [{str(BENCHMARKS)!r}]\n"
        "from gpu import checkout; checkout.make_importable()\n"
        "from t2t_revival import registry; print(registry.hparams('big').hidden_size)\n"
        "import t2t_revival.training"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == "1024\n", done.stderr


@pytest.fixture
def no_tensorflow(tmp_path):
    """Environment with a module of TensorFlow's name that takes note of whoever asks for it."""
    asked, blocked = tmp_path / "asked", tmp_path / "blocked"
    blocked.mkdir()
    code = f"open({str(asked)!r}, 'w').close()\nraise ImportError('no TensorFlow here')\n"
    (blocked / "tensorflow.py").write_text(code)
    path = os.pathsep.join(filter(None, (str(blocked), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    command = [sys.executable, "-m", "t2t_revival.cli.datagen", "--problem=translate_ende"]
    flags = ["--data_source=sample", f"--data_dir={folder}"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@needs_jax
@needs_torch
@pytest.mark.slow
def test_speeds_on_a_cpu_without_tensorflow(tmp_path, no_tensorflow):
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


@needs_jax
@pytest.mark.slow
def test_a_training_and_its_bleu_without_tensorflow(tmp_path, data_dir, no_tensorflow):
    """The second call resumes the training of the first."""
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
@needs_jax
def test_no_gpu(tmp_path):
    done = run_with_backend([sys.executable, str(SCRIPT), f"--out={tmp_path}", "--matmul_size=64"], "jax")
    assert done.returncode == 1
    assert "sees no GPU; --tiny tries the script on a CPU" in done.stderr.splitlines()[-1]
    assert not done.stdout


@needs_jax
@pytest.mark.slow
def test_variations_compute_the_same():
    done = run_with_backend([sys.executable, str(VARIATIONS)], "jax")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the same" in done.stdout
