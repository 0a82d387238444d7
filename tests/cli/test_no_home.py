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
    ("command", "flags", "remedy"),
    [
        ("trainer", f"{RUN} --data_source=sample", ", or give --data_dir and --output_dir"),
        ("trainer", f"{RUN} --data_source=sample --data_dir=data", ", or give --output_dir"),
        ("datagen", "--problem=translate_ende --data_source=sample", ", or give --data_dir"),
        ("decoder", f"{RUN} --decode_from_file=in.en", ", or give --output_dir"),
        ("eval", RUN, ", or give --output_dir"),
        ("bleu", "--translation=~/a --reference=b", ""),
        ("datagen", "--problem=translate_ende --data_source=sample --data_dir=~/data", ""),
    ],
)
def test_the_way_out_is_named(command, flags, remedy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.en").write_text("a\n")
    main = import_module(f"t2t_revival.cli.{command}").main
    assert main([f"t2t-{command}", *flags.split()]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"t2t-{command}: {NO_HOME}{remedy}"


def test_in_python():
    with pytest.raises(T2TError, match=r"output_dir=~/model: this user has no home folder"):
        Translator.load("~/model")
