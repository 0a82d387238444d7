"""t2t-decoder with outputs whose beginning is given."""

import io
import sys

from t2t_revival.cli import decoder


def test_typed_lines_have_them_too_and_a_wrong_one_ends_nothing(out, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("the dog\tder Hund\n \tder\nthe\n"))
    flags = f"--output_dir={out}", "--decode_hparams=beam_size=3,extra_length=3", "--partial_targets"
    assert decoder.main(["t2t-decoder", *flags, "--decode_interactive"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("der Hund")
    assert captured.out.count("\n") == 2
    assert "error: line 2: a prefix without a source" in captured.err
