"""`t2t-attention`: flags, files and errors."""

from t2t_revival.cli import attention

DECODE = "--decode_hparams=beam_size=2,extra_length=3"


def run(out, *arguments):
    return attention.main(["t2t-attention", f"--output_dir={out}", *map(str, arguments)])


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
