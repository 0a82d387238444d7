"""The benchmark of the input pipeline, on a few pairs."""

import json
import os

import pytest
from input_pipeline import main

from t2t_revival.data import batching


@pytest.mark.slow
@pytest.mark.nightly
def test_it_measures_generation_reading_and_padding(tmp_path, monkeypatch):
    for split, count in (("train", 6000), ("dev", 3)):
        for side, word in (("en", "dog"), ("de", "Hund")):
            lines = (f"{word} {number} {word * (number % 4)}" for number in range(count))
            (tmp_path / f"{split}.{side}").write_text("\n".join(lines) + "\n")
    segmented = []
    monkeypatch.setattr(batching, "sample", lambda pairs, *_: segmented.append(len(pairs)) or pairs)
    cores, out = os.sched_getaffinity(0), tmp_path / "out.json"
    flags = ["--vocab_size=300", "--hparams_set=tiny", "--rounds=2", "--seconds=0.2", "--processes=2"]
    main([f"--data_source={tmp_path}", "--subword_dropout=0.1", *flags, f"--out={out}"])
    generation, reading, processes = json.loads(out.read_text())["results"]
    assert generation["pairs"] == 6000
    assert 0 < max(generation["pairs_per_s"]) < min(generation["sentencepiece_pairs_per_s"])
    assert 0 < generation["share"] < 1
    assert 0 <= reading["padding_share"] < 0.6
    assert min(reading["target_tokens_per_s"], processes["target_tokens_per_s"]) > 0
    assert segmented, "subword_dropout is not used"
    assert os.sched_getaffinity(0) == cores
