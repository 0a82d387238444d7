"""t2t-decoder with constraints of its outputs: terminologies, and inputs as JSON lines."""

import io
import json
import sys

import pytest

from t2t_revival.decoding.lexical_constraints import count
from tests.support.decoder_command import decode, run

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


def test_terms_of_the_source_become_terms_of_the_output(out, files, tmp_path, capsys):
    lines = ["the dog", "sees", "", "3 Houses"]
    assert run(f"--output_dir={out}", *files(lines)) == 0
    free = capsys.readouterr().out.split("\n")
    flags = files(lines, "# terms\n\ndog\tHund\nhouses\thäuser\n")
    to = tmp_path / "to"
    assert run(f"--output_dir={out}", *flags, f"--decode_to_file={to}") == 0
    found = to.read_text(encoding="utf-8").split("\n")
    assert count("Hund", found[0]) == count("Häuser", found[3]) == 1
    assert found[1:3] == free[1:3]


def test_json_lines_have_constraints_of_their_own(out, files, capsys):
    lines = [
        {"text": "the dog"},
        {"text": "the dog", "constraints": ["Hund sieht"], "avoid": ["Häuser"]},
        {"text": "the dog", "terms": {"dog": "Hund"}},
    ]
    hparams = "--decode_hparams=beam_size=3,return_beams=True"
    flags = [*files(map(json.dumps, lines)), "--input_format=jsonl", hparams]
    assert run(f"--output_dir={out}", *flags) == 0
    _, own, term, _ = capsys.readouterr().out.split("\n")
    assert all("Hund sieht" in output and "Häuser" not in output.split() for output in own.split("\t"))
    assert all("Hund" in output for output in term.split("\t"))


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
