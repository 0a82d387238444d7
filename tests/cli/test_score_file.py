"""Log-probabilities of given targets: t2t-decoder --score_file."""

import math

import pytest

from t2t_revival import Translator
from t2t_revival.cli import decoder

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
