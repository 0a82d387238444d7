"""Wrong flags of t2t-decoder are rejected before a model is needed."""

import os

import pytest

from tests.support.decoder_command import refused, run


def test_help_gives_no_default_place_of_data(capsys):
    assert run("--help") == 0
    assert "t2t_data" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("--decode_from_file=x", "--decode_interactive"),
        ("--decode_interactive", "--decode_to_file=o"),
        ("--decode_from_file=x", "--dataset_split=dev"),
        ("--decode_from_file=x", "--eval_use_test_set"),
        ("--decode_from_file=x", "--log_examples=10"),
        ("--decode_interactive", "--log_examples=0"),
        ("--eval_use_test_set", "--dataset_split=dev"),
        ("--decode_from_file=x", "--score_file=y"),
        ("--decode_interactive", "--score_file=y"),
        ("--score_file=y", "--dataset_split=dev"),
        ("--score_file=y", "--pretty"),
        ("--score_file=y", "--partial_targets"),
        ("--score_file=y", "--markup=html"),
        ("--partial_targets", "--markup=html"),
    ],
)
def test_flags_that_do_not_go_together(one, other, capsys):
    refused(capsys, run(other, one), one.split("=")[0], other.split("=")[0], "give one of them")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--decode_shards=2", "--decode_interactive"], "only for decoding a file or a split"),
        (["--decode_shards=2", "--score_file=x"], "only for decoding a file or a split"),
        (["--decode_shards=2", "--worker_id=2"], "--worker_id=2 must be below --decode_shards=2"),
        (["--worker_id=1"], "counted from 0"),
        (["--partial_targets"], "needs --decode_from_file or --decode_interactive"),
    ],
)
def test_flags_that_need_others(arguments, said, capsys):
    refused(capsys, run(*arguments), said)


@pytest.mark.parametrize("flag", ["data_source", "vocab_size", "tmp_dir"])
def test_flags_about_making_data_are_unknown(flag, capsys):
    assert run(f"--{flag}=7") == 2
    assert capsys.readouterr().err.startswith(
        (f"t2t-decoder: error: unknown flag '{flag}'", f"t2t-decoder: error: --{flag} is a flag of")
    )


def test_a_split_does_not_go_to_the_standard_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    refused(
        capsys, run(f"--output_dir={tmp_path}", "--decode_to_file=-"), "--decode_to_file=-", "name a file"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("problem", "hparams_set", "said"),
    [
        ("translat_ende", "big", "unknown problem 'translat_ende'; did you mean translate_ende"),
        ("translate_ende", "bigg", "unknown hparams set 'bigg'; did you mean big"),
        ("translate_ende", "big", "train one with t2t-trainer"),
    ],
)
def test_a_misspelt_name_is_said_to_be_one(problem, hparams_set, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    status = run(f"--problem={problem}", f"--hparams_set={hparams_set}", "--decode_from_file=x")
    refused(capsys, status, said, "no trained model in")


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


def test_neither_problem_nor_output_dir(capsys):
    refused(capsys, run("--decode_from_file=x"), "--problem", "--output_dir")


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


def test_unknown_flag_is_a_usage_error(capsys):
    assert run("--decode_form_file=x") == 2
    assert "decode_form_file" in capsys.readouterr().err
