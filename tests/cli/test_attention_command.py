"""`t2t-attention`: flags, files and errors."""

import pytest

from t2t_revival.cli import attention

DECODE = "--decode_hparams=beam_size=2,extra_length=3"


def run(out, *arguments):
    return attention.main(["t2t-attention", f"--output_dir={out}", *map(str, arguments)])


def refused(capsys, status, *parts):
    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == ""
    error = captured.err.splitlines()[-1]
    assert error.startswith("t2t-attention: error: ")
    for part in parts:
        assert str(part) in error


def test_the_page_has_a_default_place(out, capsys):
    assert run(out, "--input=the dog", DECODE) == 0
    captured = capsys.readouterr()
    page = (out / "attention.html").read_text(encoding="utf-8")
    assert "translate_ende, tiny, step 7<" in page
    assert str(out) not in page
    assert captured.out.startswith("input      the dog\noutput     ")
    assert f"page       {out / 'attention.html'}\nnext: " in captured.out
    assert (out / "attention.html").resolve().as_uri() in captured.out
    assert captured.err.splitlines()[-1].endswith(str(out / "model.ckpt-7.npz"))


def test_both_files_of_a_given_target(out, tmp_path, capsys):
    files = f"--html={tmp_path / 'a.html'}", f"--png={tmp_path / 'a.png'}"
    narrow = "--kind=cross", "--layer=1", "--head=2"
    assert run(out, "--input=the dog", "--target=der Hund", *narrow, *files) == 0
    assert "output     der Hund\n" in capsys.readouterr().out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert '"heads": [2]' in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert not (out / "attention.html").exists()


def test_the_picture_alone(out, tmp_path):
    assert run(out, "--input=the dog", "--target=der", f"--png={tmp_path / 'a.png'}") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "out"]
    assert not (out / "attention.html").exists()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["--input is missing"]),
        (["--input="], ["--input is missing"]),
        (["--input= "], ["input is empty"]),
        (["--input=the", "--target=der", DECODE], ["--target", "--decode_hparams", "cannot be combined"]),
        (["--input=the", "--decode_hparams=beam=3"], ["did you mean beam_size"]),
        (["--input=the", "--target=der", "--layer=2"], ["--layer=2: the model has layers 1 to 1"]),
        (["--input=the", "--target=der", "--head=3"], ["--head=3: the model has heads 1 to 2"]),
        (["--input=" + "the " * 40, "--target=der"], ["the input has", "the limit is 30"]),
        (["--input=the", "--problem=translate_enfr"], ["translate_enfr", "translate_ende"]),
    ],
)
def test_refused(out, capsys, arguments, parts):
    refused(capsys, run(out, *arguments), *parts)
    assert not (out / "attention.html").exists()


@pytest.mark.parametrize("flag", ["html", "png"])
def test_a_file_that_cannot_be_written_is_known_before_the_model_is_loaded(out, tmp_path, capsys, flag):
    path = tmp_path / "missing" / "a"
    refused(capsys, run(out, "--input=the", f"--{flag}={path}"), f"cannot write {path}")


def test_no_run(tmp_path, capsys):
    refused(capsys, run(tmp_path / "nowhere", "--input=the"), tmp_path / "nowhere", "t2t-trainer")


def test_a_wrong_kind_is_a_wrong_command_line(out, capsys):
    assert run(out, "--input=the", "--kind=all") == 2
    assert "encoder|decoder|cross" in capsys.readouterr().err


def test_neither_the_model_nor_the_other_file_is_overwritten(out, tmp_path, capsys):
    (tmp_path / "link").symlink_to(out / "run.json")
    status = run(out, "--input=the", f"--html={tmp_path / 'link'}")
    refused(capsys, status, f"--html={tmp_path / 'link'} would overwrite the model's {out / 'run.json'}")
    status = run(out, "--input=the", f"--html={tmp_path / 'x'}", f"--png={tmp_path / 'x'}")
    refused(capsys, status, "are the same file: give different names")
