"""`t2t-trainer` and `t2t-avg-all`: messages, rejected commands, exit statuses."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2t_revival import registry
from t2t_revival.cli import avg_all, trainer
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.evaluation.checkpoint_scores import dev_score
from t2t_revival.training.checkpoints import directory as checkpoints
from t2t_revival.training.checkpoints.file import trained_on
from t2t_revival.training.checkpoints.selection import select_checkpoint
from t2t_revival.training.curve_files import DEV, TRAIN, read_curve, read_segments
from t2t_revival.training.lock import output_dir_lock
from t2t_revival.training.run import Run, load_hparams
from tests.support.command_lines import last_of_each
from tests.support.copy_task import shared_models

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]

SMALL = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=512,max_length=64,train_steps=4"
)


@pytest.fixture(scope="module")
def models() -> Iterator[dict]:
    """Models that the trainings here share."""
    with shared_models() as models:
        yield models


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for split, count in (("train", 200), ("dev", 10), ("test", 5)):
        english = [f"the dog number {i} sees {i % 7} cats" for i in range(count)]
        german = [f"der Hund Nummer {i} sieht {i % 7} Katzen" for i in range(count)]
        (folder / f"{split}.en").write_text("\n".join(english) + "\n", encoding="utf-8")
        (folder / f"{split}.de").write_text("\n".join(german) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def command(corpus: Path, data: Path, out: Path, *more: str, hparams: str = SMALL) -> list[str]:
    words = [
        "t2t-trainer",
        "--problem=translate_ende",
        "--hparams_set=tiny",
        f"--data_source={corpus}",
        f"--data_dir={data}",
        f"--output_dir={out}",
        f"--hparams={hparams}",
        "--vocab_size=300",
        "--eval_bleu_sentences=0",
        *more,
    ]
    return last_of_each(words)


@pytest.fixture(scope="module")
def trained(corpus: Path, data: Path, models: dict, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    assert trainer.main(command(corpus, data, out, "--local_eval_frequency=2")) == 0
    return out


def copied(trained: Path, out: Path) -> Path:
    """A copy of the trained run, which a test may change, without averages."""
    return shutil.copytree(trained, out, ignore=shutil.ignore_patterns("averaged"))


def fails(argv: list[str], capsys: pytest.CaptureFixture[str], main: object = trainer.main) -> str:
    """Runs a command that must fail; returns its one line on stderr."""
    capsys.readouterr()
    assert main(argv) in (1, 2)  # type: ignore[operator]
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1
    return errors[0]


def test_data_is_made_and_a_run_can_be_used_from_its_folder_alone(trained: Path, data: Path) -> None:
    assert (data / "translate_ende-train-00000-of-00010").exists()
    assert [c.step for c in checkpoints.list_checkpoints(trained)] == [2, 4]
    assert load_hparams(trained).hidden_size == 16
    assert Run.load(trained).problem == "translate_ende"
    assert (trained / Run.load(trained).vocabulary).exists()
    assert (trained / "learning_curve.png").stat().st_size > 5000


def test_progress_can_be_read_in_a_log_and_bleu_may_be_turned_on_later(
    corpus: Path, data: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = copied(trained, tmp_path / "out")
    flags = ["--train_steps=8", "--log_step_count_steps=2", "--eval_bleu_sentences=3"]
    assert trainer.main(command(corpus, data, out, *flags)) == 0
    shown = capsys.readouterr()
    line = (
        r"step 6/8  loss +\d+\.\d+ \(smoothed \d+\.\d+\) +[\d,]+ tokens/s  lr \d\.\d\de-\d\d  \d+:\d\d left"
    )
    assert re.search(line, shown.err)
    assert re.search(r"step 8  dev: loss .* perplexity .* accuracy .* bleu", shown.err)
    assert "\r" not in shown.err
    assert f"next: t2t-avg-all --output_dir={out}\n" in shown.out
    assert ["bleu" in row for row in read_curve(out, DEV)] == [False, False, True]


def test_a_schedule_of_ones_own_needs_its_package_again_to_resume(
    corpus: Path,
    data: Path,
    trained: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    package = tmp_path / "usr_half_rate"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from t2t_revival import registry\n"
        "@registry.register_schedule_factor\n"
        "def half_rate(step, hparams):\n"
        "    return 0.5\n"
    )
    flags = ["--log_step_count_steps=1"]
    flat = SMALL + ",learning_rate_schedule=constant*half_rate,learning_rate_constant=0.002"
    own = command(corpus, data, tmp_path / "out", *flags, hparams=flat)
    try:
        assert trainer.main([*own, f"--t2t_usr_dir={package}"]) == 0
        assert "step 4/4" in (shown := capsys.readouterr().err)
        assert shown.count("lr 1.00e-03") == 4
        shutil.copytree(tmp_path / "out", out := tmp_path / "copy")
    finally:
        sys.modules.pop("usr_half_rate", None)
    del registry._SCHEDULE_FACTORS["half_rate"]
    registry._PACKAGES.clear()  # as in a process of its own
    line = fails(command(corpus, data, out, *flags, "--train_steps=5", hparams=""), capsys)
    assert "unknown factor of learning_rate_schedule 'half_rate'; known: constant, " in line
    assert line.endswith("(one of your own needs --t2t_usr_dir)")
    assert avg_all.main(["t2t-avg-all", f"--output_dir={out}", "--n=1"]) == 0


def test_what_is_left_out_or_comes_again_is_said(
    corpus: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = tmp_path / "long"
    shutil.copytree(corpus, long)
    for language in ("en", "de"):
        with (long / f"train.{language}").open("a", encoding="utf-8") as file:
            file.write("cat " * 100 + "\n")
    first = command(long, tmp_path / "data", tmp_path / "out")
    assert trainer.main(first) == 0
    assert "1 of 201 training pairs are longer than max_length=64 tokens" in capsys.readouterr().err
    smaller = SMALL.replace("batch_size=512", "batch_size=256")
    again = command(long, tmp_path / "data", tmp_path / "out", "--train_steps=6", hparams=smaller)
    assert trainer.main(again) == 0
    assert "batching has changed (batch_size=256 instead of 512)" in capsys.readouterr().err


def test_the_steps_are_reached_already(
    corpus: Path,
    data: Path,
    trained: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        tensorflow_setup, "load_tensorflow", lambda values: pytest.fail("TensorFlow is not needed")
    )
    error = fails(command(corpus, data, trained), capsys)
    assert "already at step 4" in error
    assert "--train_steps" in error


def test_another_model_in_output_dir(
    corpus: Path, data: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wider = SMALL.replace("hidden_size=16", "hidden_size=32")
    error = fails(command(corpus, data, trained, hparams=wider), capsys)
    assert "hidden_size=16, not 32" in error
    assert load_hparams(trained).hidden_size == 16


@pytest.mark.parametrize("change", ["--hparams=num_heads=4", "--train_steps=3", "--vocab_size=280"])
def test_a_refused_command_leaves_the_run_as_it_was(
    corpus: Path, data: Path, trained: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    before = {path: path.read_bytes() for path in trained.iterdir() if path.is_file()}
    fails([*command(corpus, data, trained), change], capsys)
    assert {path: path.read_bytes() for path in trained.iterdir() if path.is_file()} == before


@pytest.fixture(scope="module")
def moved(
    corpus: Path, data: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str, Path]:
    """A run that was resumed with other settings on other data, its messages, and the new data."""
    root = tmp_path_factory.mktemp("moved")
    shutil.copytree(corpus, root / "corpus")
    for name in ("train.en", "dev.en"):
        path = root / "corpus" / name
        path.write_text(path.read_text(encoding="utf-8").replace("sees", "hears"), encoding="utf-8")
    copied(trained, root / "out")
    first = command(corpus, data, root / "out", "--local_eval_frequency=2")
    vocabulary = next((root / "out").glob("vocab.*"))
    again = [flag for flag in first if not flag.startswith(("--vocab_size", "--data_", "--hparams="))]
    again += [f"--data_source={root / 'corpus'}", f"--data_dir={root / 'data'}", f"--vocab_file={vocabulary}"]
    again += ["--train_steps=8", "--hparams=learning_rate_constant=0.1"]
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert trainer.main(again) == 0
    return root / "out", said.getvalue(), root / "data"


def test_what_is_resumed_and_what_has_changed_is_said_before_training(
    moved: tuple[Path, str, Path], data: Path
) -> None:
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


def test_scores_and_checkpoints_name_their_data(
    moved: tuple[Path, str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out, _, _ = moved
    segments = read_segments(out, DEV, "loss")
    assert [[row["step"] for row in segment.rows] for segment in segments] == [[2, 4], [6, 8]]
    assert len({segment.measured_on for segment in segments}) == 2
    assert [len(segment.rows) for segment in read_segments(out, TRAIN, "loss")] == [2, 2]
    data = {step: trained_on(out / f"model.ckpt-{step}.npz") for step in (2, 4, 6, 8)}
    assert data[2] == data[4] != data[6] == data[8]
    assert avg_all.main(["t2t-avg-all", f"--output_dir={out}", "--n=3"]) == 0
    shown = capsys.readouterr()
    assert "averaged 2 checkpoints (steps 6, 8)" in shown.out
    assert f"trained on other data ({data[8]}): step 4 ({data[4]}); --mix_data averages them too" in shown.err


def test_a_place_that_cannot_be_written_is_found_before_data_is_made(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    error = fails(command(corpus, tmp_path / "data", tmp_path / "file" / "out"), capsys)
    assert "cannot write to output_dir" in error
    assert not (tmp_path / "data").exists()


def test_a_run_goes_on_with_its_own_hparams_before_a_damaged_checkpoint(
    corpus: Path, data: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = copied(trained, tmp_path / "out")
    path = checkpoints.list_checkpoints(out)[-1].path
    path.write_bytes(path.read_bytes()[:1000])
    where = f"--output_dir={out}"
    assert avg_all.main(["t2t-avg-all", where, "--n=2"]) == 0
    shown = capsys.readouterr()
    assert f"warning: {path}: corrupt checkpoint" in shown.err
    assert "averaged 1 checkpoint (steps 2)" in shown.out
    assert path.exists()
    assert trainer.main(command(corpus, data, out, "--train_steps=6", hparams="")) == 0
    assert f"warning: {path}: corrupt checkpoint" in capsys.readouterr().err
    assert path.with_name(f"{path.name}.damaged").exists()
    assert [c.step for c in checkpoints.list_checkpoints(out)] == [2, 6]
    assert load_hparams(out).hidden_size == 16


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("--problem=translate_ende_", "did you mean translate_ende"),
        ("--hparams_set=tinny", "did you mean tiny"),
        ("--hparams=hiden_size=3", "did you mean hidden_size"),
        ("--hparams=hidden_size=many", "expected a value of type int"),
        ("--hparams=num_heads=5", "not divisible"),
        ("--hparams=deterministic_attention=True", "is for parsing: this vocabulary has no tokens of trees"),
        ("--trainsteps=3", "did you mean train_steps"),
        ("--precision=float64", "precision"),
        ("--hparams=learning_rate_schedule=constant*linear_warm", "did you mean linear_warmup"),
        ("--random_seed=5000000000", "random_seed"),
        ("--eval_early_stopping_metric=blue", "eval_early_stopping_metric"),
        ("--train_steps=-3", "train_steps"),
        ("--data_source=nowhere/at/all", "nowhere/at/all"),
    ],
)
def test_wrong_words(
    corpus: Path,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: str,
    expected: str,
) -> None:
    error = fails(command(corpus, data, tmp_path / "out", change), capsys)
    assert expected in error.lower() or expected in error
    assert not (tmp_path / "out").exists(), "a refused command leaves nothing behind"


def test_an_output_dir_that_cannot_be_written(
    corpus: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in fails(command(corpus, data, tmp_path / "file" / "out"), capsys)


def test_average(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = f"--output_dir={trained}"
    assert avg_all.main(["t2t-avg-all", where, "--n=2", "--skip_scoring"]) == 0
    shown = capsys.readouterr().out
    assert "averaged 2 checkpoints (steps 2, 4)" in shown
    assert f"next: t2t-decoder --output_dir={trained}\n" in shown
    assert select_checkpoint(trained).averaged


def test_average_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = fails(["t2t-avg-all", f"--output_dir={tmp_path}"], capsys, avg_all.main)
    assert "no trained model" in error


def test_a_second_trainer_is_refused_and_a_reader_is_not(
    corpus: Path, data: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with output_dir_lock(trained):
        error = fails(command(corpus, data, trained, "--train_steps=9"), capsys)
        assert f"{trained} is in use by another t2t-trainer" in error
        assert avg_all.main(["t2t-avg-all", f"--output_dir={trained}", "--n=1"]) == 0


def test_updates_that_are_not_finite_are_said_and_many_end_training(
    corpus: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wild = f"{SMALL},learning_rate_constant=1e30,learning_rate_warmup_steps=1"
    assert trainer.main(command(corpus, data, tmp_path, "--max_nonfinite_steps=2", hparams=wild)) == 1
    error = capsys.readouterr().err
    assert re.search(r"update \d skipped: (loss is nan|gradients are not finite) \(1 in a row", error)
    assert re.search(
        r"error: training diverged at update \d: .*, 2 times in a row; no checkpoint was saved yet", error
    )
    assert not checkpoints.list_checkpoints(tmp_path)


def test_an_average_that_is_worse_is_no_default(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loss falls at every update, so that the newest is better than the average of both."""
    out = copied(trained, tmp_path / "out")
    where = f"--output_dir={out}"
    assert avg_all.main(["t2t-avg-all", where, "--n=2"]) == 0
    shown = capsys.readouterr().out
    assert "averaged/model.ckpt-4.npz  dev: loss " in shown
    assert "\nmodel.ckpt-4.npz  dev: loss " in shown
    assert "the average is worse, and no default: commands use model.ckpt-4.npz" in shown
    assert not select_checkpoint(out).averaged
    assert select_checkpoint(out, "average").averaged
    name, value = dev_score(out, out / "averaged" / "model.ckpt-4.npz")
    assert value > dev_score(out, out / "model.ckpt-4.npz")[1]
    assert name == "loss"
    assert avg_all.main(["t2t-avg-all", where, "--n=1"]) == 0
    assert "the average is the default of commands from now on" in capsys.readouterr().out
    assert select_checkpoint(out).averaged
    assert avg_all.main(["t2t-avg-all", where, "--n=2", "--skip_scoring"]) == 0
    assert select_checkpoint(out).averaged


def test_without_a_dev_split_the_average_is_the_default(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = copied(trained, tmp_path / "out")
    assert avg_all.main(["t2t-avg-all", f"--output_dir={out}", f"--data_dir={tmp_path}/none"]) == 0
    assert "the average is the default without a score on dev: no data for" in capsys.readouterr().err
    assert select_checkpoint(out).averaged
