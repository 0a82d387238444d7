"""The summary that t2t-trainer prints at its end."""

import pytest

from t2t_revival import registry
from t2t_revival.cli import trainer
from t2t_revival.training.state import Seen
from t2t_revival.training.trainer import Result

pytestmark = pytest.mark.slow


def test_the_summary_counts_skipped_updates(tmp_path, capsys):
    registry.hparams("tiny").save(tmp_path)
    flags = trainer.main.parse(["t2t-trainer", "--problem=translate_ende", "--hparams_set=tiny"])
    trainer._print_end(flags, tmp_path, Result(9, None, 1.0, Seen(), skipped_updates=3))
    assert "3 updates skipped: their loss or gradients were not finite" in capsys.readouterr().out
    trainer._print_end(flags, tmp_path, Result(9, None, 1.0, Seen()))
    assert "skipped" not in capsys.readouterr().out
