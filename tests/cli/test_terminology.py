"""t2t-decoder with constraints of its outputs: terminologies, and inputs as JSON lines."""

import io
import json
import sys

import pytest

from t2t_revival.decoding.lexical_constraints import count
from tests.support.decoder_command import decode, refused, run, shared_search


@pytest.fixture(scope="module", autouse=True)
def _compiled_once():
    with shared_search():
        yield


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_does_not_fit_is_a_warning(out, files, capsys):
    line = {"text": "the dog", "constraints": ["Hund", "sieht", *["Häuser"] * 9]}
    assert decode(out, *files([json.dumps(line)]), "--input_format=jsonl") == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    assert "in, line 1: no room for 'Häuser', 'Häuser'" in captured.err


@pytest.mark.slow
def test_typed_lines_have_terms(out, files, monkeypatch, capsys):
    terms = files([], "dog\tHund\n")[1]
    monkeypatch.setattr(sys, "stdin", io.StringIO("the dog\n"))
    assert run(f"--output_dir={out}", "--decode_interactive", terms) == 0
    assert "Hund" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("terms", "parts"),
    [
        ("dog\n", ["terms, line 1: 1 column instead of two"]),
        ("cat\tKatze\ndog\t\n", ["terms, line 2: the target term is empty"]),
        (f"dog\t{'Hund ' * 99}\n", ["in, line 2: the phrase 'Hund", "tokens, and the output may have"]),
    ],
)
def test_a_wrong_terminology_is_named(out, files, capsys, terms, parts):
    refused(capsys, decode(out, *files(["cat", "dog"], terms)), *parts)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("the dog", "not JSON"),
        ('{"text": "a", "avoids": []}', "unknown key 'avoids'; did you mean avoid?"),
        (
            '{"text": "a", "constraints": ["b"], "avoid": ["b"]}',
            "'b' is to be in the output and to be avoided",
        ),
        ('{"text": "a", "constraints": [""]}', "a phrase of the constraints is empty"),
    ],
)
def test_wrong_json_lines_are_named(out, files, capsys, line, part):
    flags = files(['{"text": "a"}', line])
    refused(
        capsys, decode(out, *flags, "--input_format=jsonl"), f"{flags[0].partition('=')[2]}, line 2: ", part
    )


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (["--decode_interactive", "--input_format=jsonl"], "--input_format=jsonl needs --decode_from_file"),
        (["--terminology=x"], "--terminology needs --decode_from_file or --decode_interactive"),
        (["--decode_from_file=in", "--terminology=x", "--engine=ctranslate2"], "--engine=tensorflow"),
        (["--decode_from_file=in", "--terminology=x", "--partial_targets"], "cannot be combined"),
        (["--decode_from_file=in", "--terminology=x", "--split_sentences"], "cannot be combined"),
        (["--decode_from_file=in", "--input_format=jsonl", "--partial_targets"], "cannot be combined"),
        (["--score_file=in", "--terminology=x"], "cannot be combined"),
        (["--decode_from_file=-", "--terminology=-"], "only one of them can be the standard input"),
    ],
)
def test_flags_that_exclude_each_other(out, capsys, flags, part):
    refused(capsys, run(f"--output_dir={out}", *flags), part)


def test_outputs_do_not_overwrite_the_terminology(out, files, tmp_path, capsys):
    flags = files(["dog"], "dog\tHund\n")
    refused(
        capsys, decode(out, *flags, f"--decode_to_file={tmp_path / 'terms'}"), "would overwrite", flags[1]
    )
    assert (tmp_path / "terms").read_text() == "dog\tHund\n"


def test_a_terminology_that_is_not_there_is_named(out, files, tmp_path, capsys):
    flags = [*files(["dog"]), f"--terminology={tmp_path / 'nowhere'}"]
    refused(capsys, decode(out, *flags), f"--terminology={tmp_path / 'nowhere'}: No such file")


@pytest.mark.parametrize("hparams", ["beam_size=1", "mbr=chrf", "sampling_method=random"])
def test_options_that_exclude_constraints(out, files, capsys, hparams):
    flags = [*files(["dog"], "dog\tHund\n"), f"--decode_hparams={hparams}"]
    refused(capsys, run(f"--output_dir={out}", *flags), "constraints", hparams.partition("=")[0])
