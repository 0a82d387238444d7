"""Wrong flags of t2t-decoder are rejected before a model is needed."""

import os

import pytest

from tests.cli.conftest import refused
from tests.cli.decoder_command import run


def test_help_gives_no_default_place_of_data(capsys):
    assert run("--help") == 0
    assert "t2t_data" not in capsys.readouterr().out


def test_names_of_a_users_package_are_known(tmp_path, capsys):
    package = tmp_path / "user_package_of_decoder"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from t2t_revival import registry\n"
        "from t2t_revival.hparams.base import base\n\n\n"
        "@registry.register_hparams\n"
        "def bigg():\n"
        "    return base()\n"
    )
    status = run("--hparams_set=bigg", f"--t2t_usr_dir={package}", f"--output_dir={tmp_path}")
    refused(capsys, status, "train one with t2t-trainer")


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["--decode_from_file={in}", "--decode_to_file={in}"], "--decode_to_file={in}"),
        (["--decode_from_file={in}", "--decode_to_file={folder}/../{name}/in"], "--decode_to_file={folder}"),
        (["--decode_from_file=~/in", "--decode_to_file={folder}/link"], "--decode_to_file={folder}/link"),
        (["--score_file={in}", "--decode_to_file=~/hard"], "--decode_to_file=~/hard"),
        (["--decode_from_file={in}.part", "--decode_to_file={in}"], "{in}.part, a temporary file of"),
        (["--decode_from_file={in}", "--decode_to_file={in}", "--decode_shards=2"], "--decode_to_file={in}"),
        (["--decode_from_file={in}", "--decode_to_file={folder}/i", "--decode_shards=2"], "{folder}/i000 of"),
    ],
)
def test_an_output_that_is_the_input_is_refused(arguments, written, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("in", "in.part"):
        (tmp_path / name).write_text("the dog\n")
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "hard").hardlink_to(tmp_path / "in")
    (tmp_path / "i000").symlink_to("in")
    values = {"in": tmp_path / "in", "folder": tmp_path, "name": tmp_path.name}
    status = run("--output_dir=nowhere", *(argument.format(**values) for argument in arguments))
    refused(capsys, status, written.format(**values), "would overwrite", "they are the same file")
    assert (tmp_path / "in").read_text() == "the dog\n"


def test_the_standard_output_is_not_the_input_either(tmp_path, capfd):
    (tmp_path / "in").write_text("the dog\n")
    before = os.dup(1)
    with (tmp_path / "in").open("ab") as file:
        os.dup2(file.fileno(), 1)
        try:
            status = run("--output_dir=nowhere", f"--decode_from_file={tmp_path / 'in'}")
        finally:
            os.dup2(before, 1)
            os.close(before)
    assert status == 1
    assert "the standard output would overwrite --decode_from_file" in capfd.readouterr().err
