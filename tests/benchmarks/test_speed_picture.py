"""The picture of decoding speed."""

import json

import pytest
import speed_picture

WINDOWS = [{"sentences": 100, "seconds": seconds} for seconds in (1.0, 0.5, 2.0)]
RESULTS = {
    "small/saved_model-int8-greedy": {
        "windows": {"32": WINDOWS},
        "milliseconds": [3.0, 9.0, 4.0],
        "bleu": 39.1,
    },
    "tiny/ctranslate2-int8": {"windows": {"32": WINDOWS[:1]}, "milliseconds": [5.0], "bleu": 38.0},
    "tiny/opennmt-tf-float32": {
        "windows": {"32": [{"sentences": 20, "seconds": 1.0}]},
        "milliseconds": [7.0],
        "bleu": 40.0,
    },
    "tiny/tensor2tensor-float32": {"windows": {}, "milliseconds": [], "bleu": float("nan")},
}


def test_points_are_medians_of_those_who_finished():
    names = list(RESULTS)
    assert speed_picture.points(RESULTS, "32") == [
        (names[0], "small", "saved_model", 39.1, 100.0, 4.0),
        (names[1], "tiny", "ctranslate2", 38.0, 100.0, 5.0),
        (f"{names[2]} (the first 20 sentences)", "tiny", "opennmt-tf", 40.0, 20.0, 7.0),
    ]


@pytest.mark.slow
def test_a_picture_is_written(tmp_path):
    results, picture = tmp_path / "speed.json", tmp_path / "speed.png"
    results.write_text(json.dumps(RESULTS))
    assert speed_picture.main([f"--results={results}", f"--output={picture}"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
def test_results_that_cannot_be_read(capsys, tmp_path, content):
    results = tmp_path / "speed.json"
    if content is not None:
        results.write_bytes(content)
    assert speed_picture.main([f"--results={results}", f"--output={tmp_path / 'speed.png'}"]) == 1
    assert capsys.readouterr().err.startswith(f"error: {results}: ")


def test_results_without_the_batch_size(capsys, tmp_path):
    results = tmp_path / "speed.json"
    results.write_text(json.dumps(RESULTS))
    flags = [f"--results={results}", "--batch_size=8", f"--output={tmp_path / 'speed.png'}"]
    assert speed_picture.main(flags) == 1
    assert capsys.readouterr().err == f"error: {results} has no results of batches of 8\n"
