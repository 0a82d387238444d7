"""Commands that write at their end notice before their work that they cannot."""

import errno
import os
import tempfile

import pytest

from t2t_revival.cli import avg_all
from t2t_revival.cli.support import tensorflow_setup
from tests.support.processes import run_command

CASES = {
    "t2t-shortlist": [],
    "t2t-exporter": [],
    "t2t-avg-all": [],
    "t2t-align": ["--choose_heads"],
    "t2t-reproduce": ["--table=2", "--scale=cpu", "--data_source=sample"],
}


def refuse(*_, **__):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize("name", CASES)
def test_a_read_only_folder_is_noticed_before_the_work(name, out, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    for work in ("load_tensorflow", "load_tensorflow_alone"):
        monkeypatch.setattr(tensorflow_setup, work, lambda *_: pytest.fail("the work has begun"))
    monkeypatch.setattr(avg_all, "average_latest", lambda *_: pytest.fail("the work has begun"))
    assert run_command(name, f"--output_dir={out}", *CASES[name]) == 1
    assert "Read-only file system; mend the folder's permissions" in capsys.readouterr().err
