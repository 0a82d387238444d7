"""Log-probabilities of given targets: t2t-decoder --score_file."""

import io
import math
import os
import subprocess
import sys

import pytest

from t2t_revival.cli import decoder
from t2t_revival.decoding.translator import Translator
from t2t_revival.training.checkpoints import directory as checkpoints

PAIRS = "the dog\tder Hund\nsees 3 houses\t\nthe\tder Hund sieht\n"


def score(out, *arguments):
    return decoder.main(["t2t-decoder", f"--output_dir={out}", *map(str, arguments)])


def test_a_number_for_each_line_and_what_they_are_worth_together(out, tmp_path, capsys):
    (tmp_path / "pairs").write_text(PAIRS)
    assert score(out, f"--score_file={tmp_path / 'pairs'}", f"--decode_to_file={tmp_path / 'o'}") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    numbers = [float(line) for line in (tmp_path / "o").read_text().splitlines()]
    expected = Translator.load(out).score([tuple(line.split("\t")) for line in PAIRS.splitlines()])
    assert numbers == pytest.approx([score.log_prob for score in expected], abs=1e-4)
    tokens = sum(score.tokens for score in expected)
    mean = sum(numbers) / tokens
    assert f"log-probability {mean:.3f}" in captured.err
    assert f"perplexity {math.exp(-mean):.1f}" in captured.err
    assert f"({tokens} tokens of 3 targets, EOS counted)" in captured.err
    assert f"next: paste {tmp_path / 'o'} {tmp_path / 'pairs'} | sort -g | head" in captured.err


def test_standard_streams(out, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PAIRS.encode())))
    assert score(out, "--score_file=-") == 0
    captured = capsys.readouterr()
    assert all(float(line) < 0 for line in captured.out.splitlines())
    assert captured.out.count("\n") == 3
    assert "next" not in captured.err


def test_weights_that_are_no_numbers(out, tmp_path, capsys):
    arrays, meta = checkpoints.load(out / "model.ckpt-7.npz")
    arrays = {name: a * float("nan") if a.dtype.kind == "f" else a for name, a in arrays.items()}
    checkpoints.save(out / "model.ckpt-7.npz", arrays, meta)
    (tmp_path / "pairs").write_text(PAIRS)
    assert score(out, f"--score_file={tmp_path / 'pairs'}") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "contain NaN" in captured.err.splitlines()[-1]


@pytest.mark.slow
def test_a_process_of_its_own_says_no_more_than_it_should(out):
    command = [sys.executable, "-m", "t2t_revival.cli.decoder", f"--output_dir={out}", "--score_file=-"]
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        command, input=PAIRS, capture_output=True, text=True, check=True, env=environment, timeout=300
    )
    assert done.stdout.count("\n") == 3
    first, *rest = done.stderr.splitlines()
    assert first.startswith("decoding with")
    assert [line.split()[0] for line in rest] == ["3", "log-probability"]
