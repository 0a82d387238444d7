"""The benchmark of the input pipeline, on a few pairs."""

import re

import pytest
from input_pipeline import main


@pytest.mark.slow
@pytest.mark.nightly
def test_it_measures_generation_reading_and_padding(tmp_path, capsys):
    for split, count in (("train", 6000), ("dev", 3)):
        for side, word in (("en", "dog"), ("de", "Hund")):
            lines = (f"{word} {number} {word * (number % 4)}" for number in range(count))
            (tmp_path / f"{split}.{side}").write_text("\n".join(lines) + "\n")
    flags = ["--vocab_size=300", "--hparams_set=tiny", "--rounds=1", "--seconds=0.2", "--processes=2"]
    assert main([f"--data_source={tmp_path}", "--subword_dropout=0.1", *flags]) == 0
    out = capsys.readouterr().out
    ours, bare, *others = (
        float(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:pairs|target tokens)/s", out)
    )
    assert 0 < ours < bare
    assert min(others) > 0
    assert 0 <= float(re.search(r"padding +(\d+\.\d)%", out)[1]) < 60
    assert "subword_dropout.py" in out
