"""t2t-trainer's `--registry_help`, and the summary that it prints at the end."""

import re

import pytest

from t2t_revival import registry
from t2t_revival.cli import datagen, trainer
from t2t_revival.training.checkpoints import directory as checkpoints
from t2t_revival.training.checkpoints.best import keep_best
from t2t_revival.training.loop import Result
from t2t_revival.training.state import Seen

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", [trainer, datagen])
def test_registry_help(command, capsys):
    assert command.main(["command", "--registry_help"]) == 0
    shown = capsys.readouterr().out
    for name in ("translate_ende", "translate_enfr", "base", "big", "table3_e_learned"):
        assert re.search(rf"^  {name} +\S", shown, re.MULTILINE)


def test_the_summary_counts_skipped_updates(tmp_path, capsys):
    registry.hparams("tiny").save(tmp_path)
    values = trainer.command_flags()
    values(["t2t-trainer", "--problem=translate_ende", "--hparams_set=tiny"])
    trainer._print_end(values, tmp_path, Result(9, None, 1.0, Seen(), skipped_updates=3))
    assert "3 updates skipped: their loss or gradients were not finite" in capsys.readouterr().out
    trainer._print_end(values, tmp_path, Result(9, None, 1.0, Seen()))
    assert "skipped" not in capsys.readouterr().out


def test_the_summary_names_the_best_where_training_stops_early(tmp_path, capsys):
    rows = "step,target_tokens,loss,data\n1,1,0.5,a\n2,2,2.5,b\n3,3,2.25,b\n4,4,2.75,b\n"
    (tmp_path / "dev.csv").write_text(rows, encoding="utf-8")
    checkpoints.save(tmp_path / "model.ckpt-3.npz", {}, {"step": 3})
    keep_best(tmp_path, {3: 2.25}, "loss", 1)
    registry.hparams("tiny").save(tmp_path)
    values = trainer.command_flags()
    values(["t2t-trainer", "--problem=translate_ende", "--hparams_set=tiny"])
    trainer._print_end(values, tmp_path, Result(4, "early stopping", 1.0, Seen()))
    shown = capsys.readouterr().out
    assert "stopped by early stopping\nbest dev loss: 2.25 at step 3\n" in shown
    kept = tmp_path / "best" / "model.ckpt-3.npz"
    assert f"best checkpoint by loss, 2.25: {kept}: commands use it from now on\n" in shown
    assert shown.endswith("next: t2t-decoder --problem=translate_ende --hparams_set=tiny\n")
    trainer._print_end(values, tmp_path, Result(4, None, 1.0, Seen()))
    assert f"best checkpoint by loss, 2.25: {kept}, for --checkpoint=best\n" in capsys.readouterr().out
