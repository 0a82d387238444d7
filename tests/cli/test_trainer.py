"""`t2t-trainer` and `t2t-avg-all`: messages, resumed and changed trainings, defaults of other commands."""

import contextlib
import io
import re
import shutil
import sys
from collections import Counter

import pytest

from t2t_revival import registration
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import trained_on
from t2t_revival.checkpoints.selection import select_checkpoint
from t2t_revival.cli import avg_all, decoder
from t2t_revival.curve_files import DEV, TRAIN, read_curve, read_segments
from t2t_revival.evaluation.checkpoint_evaluation import dev_score
from t2t_revival.model_folder import ModelFolder, Run
from tests.cli.conftest import failure
from tests.cli.trainer_command import SMALL, train
from tests.support.line_corpus import write_corpus
from tests.support.processes import run_command

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"), train=200, dev=10)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def run(corpus, data, tmp_path_factory):
    """A training of 4 updates."""
    out = tmp_path_factory.mktemp("run")
    made = f"--data_source={corpus}", "--vocab_size=310"
    assert train(data, out, *made, "--local_eval_frequency=2") == 0
    return out


@pytest.fixture
def out(run, tmp_path):
    """A copy of that run, which a test may change."""
    return shutil.copytree(run, tmp_path / "out")


def average(out, *flags):
    return avg_all.main(["t2t-avg-all", f"--output_dir={out}", *flags])


def test_a_command_opens_each_file_of_the_data_and_of_the_run_once(out, data):
    opened = Counter()
    sys.addaudithook(lambda event, values: opened.update([str(values[0])] if event == "open" else []))
    of_data = data / "translate_ende.meta.json", data / "vocab.translate_ende.310.spm"
    once = dict.fromkeys((*of_data, out / "run.json", out / "hparams.json"), 1)
    for command in (
        lambda: train(data, out, "--train_steps=5"),
        lambda: decoder.main(["t2t-decoder", f"--output_dir={out}"]),
    ):
        opened.clear()
        assert command() == 0
        assert {path: opened[str(path)] for path in once} == once


def test_data_is_made_and_a_run_can_be_used_from_its_folder_alone(run, data):
    assert (data / "translate_ende-train-00000-of-00010").exists()
    assert [c.step for c in checkpoints.list_checkpoints(run)] == [2, 4]
    assert ModelFolder(run).hparams.hidden_size == 16
    assert Run.load(run).problem == "translate_ende"
    assert (run / Run.load(run).vocabulary).exists()
    assert (run / "learning_curve.png").stat().st_size > 5000


def test_progress_can_be_read_in_a_log_and_bleu_may_be_turned_on_later(data, out, capsys):
    flags = ["--train_steps=8", "--log_step_count_steps=2", "--eval_bleu_sentences=3"]
    assert train(data, out, *flags) == 0
    shown = capsys.readouterr()
    line = (
        r"step 6/8  loss +\d+\.\d+ \(smoothed \d+\.\d+\) +[\d,]+ tokens/s  lr \d\.\d\de-\d\d  \d+:\d\d left"
    )
    assert re.search(line, shown.err)
    assert re.search(r"step 8  dev: loss .* perplexity .* accuracy .* bleu", shown.err)
    assert "\r" not in shown.err
    assert f"next: t2t-avg-all --output_dir={out}\n" in shown.out
    assert ["bleu" in row for row in read_curve(out, DEV)] == [False, False, True]


def test_a_schedule_of_ones_own_needs_its_package_again_to_resume(run, data, tmp_path, capsys):
    package = tmp_path / "usr_half_rate"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from t2t_revival import registry\n"
        "@registry.register_schedule_factor\n"
        "def half_rate(step, hparams):\n"
        "    return 0.5\n"
    )
    flat = SMALL + ",learning_rate_schedule=constant*half_rate,learning_rate_constant=0.002"
    each = "--log_step_count_steps=1"
    assert train(data, tmp_path / "out", each, f"--t2t_usr_dir={package}", hparams=flat) == 0
    assert "step 4/4" in (shown := capsys.readouterr().err)
    assert shown.count("lr 1.00e-03") == 4
    sys.modules.pop("usr_half_rate")
    del registration.SCHEDULE_FACTORS["half_rate"]
    registration.PACKAGES.clear()  # as in a process of its own
    line = failure(capsys, train(data, tmp_path / "out", each, "--train_steps=5", hparams=""))
    assert "unknown factor of learning_rate_schedule 'half_rate'; known: constant, " in line
    assert line.endswith("(one of your own needs --t2t_usr_dir)")
    assert average(tmp_path / "out", "--n=1") == 0


def test_what_is_left_out_or_comes_again_is_said(corpus, tmp_path, capsys):
    long = shutil.copytree(corpus, tmp_path / "long")
    for language in ("en", "de"):
        with (long / f"train.{language}").open("a", encoding="utf-8") as file:
            file.write("cat " * 100 + "\n")
    flags = f"--data_source={long}", "--vocab_size=310"
    assert train(tmp_path / "data", tmp_path / "out", *flags) == 0
    assert "1 of 201 training pairs are longer than max_length=64 tokens" in capsys.readouterr().err
    smaller = SMALL.replace("batch_size=512", "batch_size=256")
    assert train(tmp_path / "data", tmp_path / "out", "--train_steps=6", hparams=smaller) == 0
    assert "batching has changed (batch_size=512, not 256)" in capsys.readouterr().err


@pytest.fixture(scope="module")
def moved(corpus, data, run, tmp_path_factory):
    """A run that was resumed with other settings on other data, its messages, and the new data."""
    root = tmp_path_factory.mktemp("moved")
    shutil.copytree(corpus, root / "corpus")
    for name in ("train.en", "dev.en"):
        path = root / "corpus" / name
        path.write_text(path.read_text(encoding="utf-8").replace("sees", "hears"), encoding="utf-8")
    shutil.copytree(run, root / "out")
    made = f"--data_source={root / 'corpus'}", f"--vocab_file={next((root / 'out').glob('vocab.*'))}"
    steps = "--local_eval_frequency=2", "--train_steps=8"
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert train(root / "data", root / "out", *made, *steps, hparams="learning_rate_constant=0.1") == 0
    return root / "out", said.getvalue(), root / "data"


def test_what_is_resumed_and_what_has_changed_is_said_before_training(moved, data):
    _, said, new_data = moved
    lines = said.splitlines()
    start = lines.index("resuming from model.ckpt-4.npz (step 4)")
    assert lines[start : start + 5] == [
        "resuming from model.ckpt-4.npz (step 4)",
        "learning_rate_constant: 1 -> 0.1",
        "train_steps: 4 -> 8",
        f"warning: the training data is another: {data} -> {new_data}; training begins at its first batch",
        "dev data has changed: earlier scores in dev.csv are not compared with later ones",
    ]
    assert lines[start + 5].startswith("step 5/8 ")


def test_scores_and_checkpoints_name_their_data(moved, capsys):
    out, _, _ = moved
    segments = read_segments(out, DEV, "loss")
    assert [[row["step"] for row in segment.rows] for segment in segments] == [[2, 4], [6, 8]]
    assert len({segment.measured_on for segment in segments}) == 2
    assert [len(segment.rows) for segment in read_segments(out, TRAIN, "loss")] == [2, 2]
    data = {step: trained_on(out / f"model.ckpt-{step}.npz") for step in (2, 4, 6, 8)}
    assert data[2] == data[4] != data[6] == data[8]
    assert average(out, "--n=3") == 0
    shown = capsys.readouterr()
    assert "averaged 2 checkpoints (steps 6, 8)" in shown.out
    assert f"trained on other data ({data[8]}): step 4 ({data[4]}); --mix_data averages them too" in shown.err


def test_a_run_goes_on_with_its_own_hparams_before_a_damaged_checkpoint(data, out, capsys):
    path = checkpoints.list_checkpoints(out)[-1].path
    path.write_bytes(path.read_bytes()[:1000])
    assert average(out, "--n=2") == 0
    shown = capsys.readouterr()
    assert f"warning: {path}: corrupt checkpoint" in shown.err
    assert "averaged 1 checkpoint (steps 2)" in shown.out
    assert path.exists()
    assert train(data, out, "--train_steps=6", hparams="") == 0
    assert f"warning: {path}: corrupt checkpoint" in capsys.readouterr().err
    assert path.with_name(f"{path.name}.damaged").exists()
    assert [c.step for c in checkpoints.list_checkpoints(out)] == [2, 6]
    assert ModelFolder(out).hparams.hidden_size == 16


def test_a_reader_is_not_refused_while_a_training_runs(out):
    with ModelFolder(out).lock():
        assert average(out, "--n=1") == 0


def test_updates_that_are_not_finite_are_said_and_many_end_training(run, data, tmp_path, capsys):
    wild = f"{SMALL},learning_rate_constant=1e30,learning_rate_warmup_steps=1"
    assert train(data, tmp_path, "--max_nonfinite_steps=2", hparams=wild) == 1
    error = capsys.readouterr().err
    assert re.search(r"update \d skipped: (loss is nan|gradients are not finite) \(1 in a row", error)
    assert re.search(
        r"error: training diverged at update \d: .*, 2 times in a row; no checkpoint was saved yet", error
    )
    assert not checkpoints.list_checkpoints(tmp_path)


def test_an_average_that_is_worse_is_no_default(out, capsys):
    """The loss falls at every update, so that the newest is better than the average of both."""
    assert average(out, "--n=2") == 0
    shown = capsys.readouterr().out
    assert "averaged/model.ckpt-4.npz  dev: loss " in shown
    assert "\nmodel.ckpt-4.npz  dev: loss " in shown
    assert "the average is worse, and no default: commands use model.ckpt-4.npz" in shown
    assert not select_checkpoint(out).averaged
    assert select_checkpoint(out, "average").averaged
    name, value = dev_score(out, out / "averaged" / "model.ckpt-4.npz")
    assert value > dev_score(out, out / "model.ckpt-4.npz")[1]
    assert name == "loss"
    assert average(out, "--n=1") == 0
    assert "the average is the default of commands from now on" in capsys.readouterr().out
    assert select_checkpoint(out).averaged


def test_an_average_without_a_score_is_the_default(out, tmp_path, capsys):
    assert average(out, f"--data_dir={tmp_path}/none") == 0
    assert "the average is the default without a score on dev: no data for" in capsys.readouterr().err
    assert select_checkpoint(out).averaged
    assert average(out, "--n=2", "--skip_scoring") == 0
    shown = capsys.readouterr().out
    assert "averaged 2 checkpoints (steps 2, 4)" in shown
    assert f"next: t2t-decoder --output_dir={out}\n" in shown
    assert select_checkpoint(out).averaged


def test_a_training_that_stops_early_says_why_and_names_its_best(data, out, capsys):
    """No score is better by so much."""
    early = "--eval_early_stopping_steps=2", "--eval_early_stopping_metric_delta=9", "--train_steps=20"
    assert train(data, out, *early, "--local_eval_frequency=2", "--keep_best=1") == 0
    shown = capsys.readouterr().out
    assert re.search(r"stopped by early stopping\nbest dev loss: [\d.]+ at step (\d+)\n", shown)
    best = re.search(r"best checkpoint by loss, [\d.]+: (\S+): commands use it from now on\n", shown)[1]
    assert best.startswith(str(out / "best" / "model.ckpt-"))


@pytest.mark.parametrize("command", ["trainer", "datagen"])
def test_registry_help(command, capsys):
    assert run_command(f"t2t-{command}", "--registry_help") == 0
    shown = capsys.readouterr().out
    for name in ("translate_ende", "translate_enfr", "base", "big", "table3_e_learned"):
        assert re.search(rf"^  {name} +\S", shown, re.MULTILINE)
