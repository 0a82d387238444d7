"""t2t-decoder with constraints of its outputs: terminologies, and inputs as JSON lines."""

import io
import json
import sys

import pytest

from tests.cli.decoder_command import decode, run

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path):
    """Writes an input and a terminology; returns the flags that name them."""

    def write(lines, terms=None):
        (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        flags = [f"--decode_from_file={tmp_path / 'in'}"]
        if terms is not None:
            (tmp_path / "terms").write_text(terms, encoding="utf-8")
            flags.append(f"--terminology={tmp_path / 'terms'}")
        return flags

    return write


def test_what_does_not_fit_is_a_warning(out, files, capsys):
    line = {"text": "the dog", "constraints": ["Hund", "sieht", *["Häuser"] * 9]}
    assert decode(out, *files([json.dumps(line)]), "--input_format=jsonl") == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert "in, line 1: no room for 'Häuser', 'Häuser'" in captured.err


def test_typed_lines_have_terms(out, files, monkeypatch, capsys):
    terms = files([], "dog\tHund\n")[1]
    monkeypatch.setattr(sys, "stdin", io.StringIO("the dog\n"))
    assert run(f"--output_dir={out}", "--decode_interactive", terms) == 0
    assert "Hund" in capsys.readouterr().out
