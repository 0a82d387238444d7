"""The benchmark of the input pipeline, on a few pairs."""

import re
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
from input_pipeline import main  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [[], ["--subword_dropout=0.1"]])
def test_it_measures_generation_reading_and_padding(dropout, tmp_path, capsys):
    for split, count in (("train", 6000), ("dev", 3)):
        for side, word in (("en", "dog"), ("de", "Hund")):
            lines = (f"{word} {number} {word * (number % 4)}" for number in range(count))
            (tmp_path / f"{split}.{side}").write_text("\n".join(lines) + "\n")
    flags = ["--vocab_size=300", "--hparams_set=tiny", "--rounds=1", "--seconds=0.2", "--processes=2"]
    flags += dropout
    assert main([f"--data_source={tmp_path}", *flags]) == 0
    out = capsys.readouterr().out
    ours, bare, read, together = (
        float(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:pairs|target tokens)/s", out)
    )
    assert 0 < ours < bare
    assert read > 0
    assert together > 0
    padding = re.search(r"padding +(\d+\.\d)%", out)
    assert padding is not None
    assert 0 <= float(padding[1]) < 60
    assert "function calls" in out
    assert ("subword_dropout.py" in out) == bool(dropout)
