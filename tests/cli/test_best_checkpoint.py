"""The best checkpoint: kept by t2t-trainer, exported while training goes on, used by the other commands."""

import re

import pytest

from t2t_revival.checkpoints.directory import list_averaged, list_checkpoints
from t2t_revival.checkpoints.selection import list_best, select_checkpoint
from t2t_revival.cli import avg_all, decoder, eval
from t2t_revival.cli.support.subcommand import BestExport
from t2t_revival.utils import checked_json
from tests.cli.trainer_command import train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(trained, tmp_path_factory):
    """A training of 6 updates that keeps its last checkpoint, and its best two; the best is exported."""
    folder = tmp_path_factory.mktemp("run")
    kept = "--keep_checkpoint_max=1", "--keep_best=2", "--export_best"
    assert train(trained / "data", folder, "--train_steps=6", "--local_eval_frequency=2", *kept) == 0
    return folder


def test_the_best_two_are_kept_and_the_best_is_exported(run):
    assert [checkpoint.step for checkpoint in list_checkpoints(run)] == [6]
    assert [checkpoint.step for checkpoint in list_best(run)] == [6, 4], "the loss falls at every update"
    versions = [path for path in (run / "export").iterdir() if path.name.isdecimal()]
    assert versions
    assert all((version / "saved_model.pb").exists() for version in versions)
    newest = checked_json.load(max(versions, key=lambda path: int(path.name)) / "origin.json", "")
    assert [*newest["checkpoints"]] == [str(run / "best" / "model.ckpt-6.npz")]


def test_the_decoder_takes_the_best(run, tmp_path, capsys):
    (tmp_path / "in").write_text("the old dog\n")
    flags = [f"--output_dir={run}", f"--decode_from_file={tmp_path / 'in'}", "--checkpoint=best"]
    assert decoder.main(["t2t-decoder", *flags]) == 0
    assert f"{run}/best/model.ckpt-6.npz" in capsys.readouterr().err


def test_all_that_are_kept_are_evaluated(run, capsys):
    flags = [f"--output_dir={run}", "--eval_bleu_sentences=0"]
    assert eval.main(["t2t-eval", *flags]) == 0
    assert re.findall(r"^ +(\d) ", capsys.readouterr().out, re.MULTILINE) == ["4", "6"]
    assert eval.main(["t2t-eval", *flags, "--checkpoint=newest"]) == 0
    assert re.findall(r"^ +(\d) ", capsys.readouterr().out, re.MULTILINE) == ["6"]


def test_the_best_are_averaged(run, capsys):
    assert avg_all.main(["t2t-avg-all", f"--output_dir={run}", "--checkpoint=best"]) == 0
    shown = capsys.readouterr().out
    assert "averaged 2 checkpoints (steps 4, 6)" in shown
    path = run / "best" / "averaged" / "model.ckpt-6.npz"
    assert f"next: t2t-decoder --output_dir={run} --checkpoint={path}\n" in shown
    assert select_checkpoint(run, str(path)).averaged
    assert not list_averaged(run), "the average of the last ones is another one"


def test_an_export_that_fails_is_told_with_its_command(tmp_path, capsys):
    with BestExport({"output_dir": tmp_path / "nowhere"}) as export:
        export.ask()
        export.finish()
    said = capsys.readouterr().err
    assert "warning: t2t-exporter: error: no trained model in" in said
    assert f"again: t2t-exporter --output_dir={tmp_path}/nowhere --checkpoint=best" in said


def test_an_interrupted_export_names_its_command(tmp_path, capsys):
    with BestExport({"output_dir": tmp_path}) as export:
        export.ask()
    said = capsys.readouterr().err
    assert f"is not exported: t2t-exporter --output_dir={tmp_path} --checkpoint=best" in said


@pytest.mark.nightly
def test_one_export_runs_at_a_time_and_the_last_wish_counts(run, capsys):
    with BestExport({"output_dir": run}) as export:
        for _ in range(3):
            export.ask()
        export.finish()
    assert capsys.readouterr().err.count("exported the best checkpoint\n") == 2
