"""t2t-decoder with outputs whose beginning is given."""

import io
import sys

import pytest

from t2t_revival.cli import decoder


def decode(out, *flags):
    return decoder.main(
        ["t2t-decoder", f"--output_dir={out}", "--decode_hparams=beam_size=3,extra_length=3", *flags]
    )


@pytest.mark.slow
def test_outputs_begin_with_what_stands_behind_the_tab(out, tmp_path, capsys):
    (tmp_path / "in").write_text("the dog\tder Hund\n\nsees 3 houses\nthe\tHäuser\n", encoding="utf-8")
    assert decode(out, f"--decode_from_file={tmp_path / 'in'}", "--partial_targets") == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith("der Hund")
    assert lines[1] == ""
    assert lines[3].startswith("Häuser")
    (tmp_path / "in").write_text("the dog\n\nsees 3 houses\n")
    assert decode(out, f"--decode_from_file={tmp_path / 'in'}") == 0
    assert capsys.readouterr().out.split("\n")[1:3] == lines[1:3]


def test_typed_lines_have_them_too_and_a_wrong_one_ends_nothing(out, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("the dog\tder Hund\n \tder\nthe\n"))
    assert decode(out, "--decode_interactive", "--partial_targets") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("der Hund")
    assert captured.out.count("\n") == 2
    assert "error: line 2: a prefix without a source" in captured.err
