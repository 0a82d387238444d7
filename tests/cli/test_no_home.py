"""Users without a home folder, as in a container that runs as a number that /etc/passwd lacks."""

import os
from importlib import import_module

import pytest

from t2t_revival import T2TError, Translator

NO_HOME = "error: this user has no home folder, which ~ and default folders need: set HOME"
RUN = "--problem=translate_ende --hparams_set=tiny"


@pytest.fixture(autouse=True)
def nobody(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("trainer", f"{RUN} --data_source=sample"),
        ("decoder", f"{RUN} --decode_from_file=in.en"),
        ("bleu", "--translation=~/a --reference=b"),
    ],
)
def test_the_way_out_is_named(command, flags, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.en").write_text("a\n")
    main = import_module(f"t2t_revival.cli.{command}").main
    assert main([f"t2t-{command}", *flags.split()]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"t2t-{command}: {NO_HOME}")


def test_in_python():
    with pytest.raises(T2TError, match=r"output_dir=~/model: this user has no home folder"):
        Translator.load("~/model")
