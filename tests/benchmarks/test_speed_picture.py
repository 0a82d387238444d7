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
    "tiny/tensor2tensor-float32": {"windows": {}, "milliseconds": [], "bleu": float("nan")},
}


def test_points_are_medians_of_those_who_finished():
    point = ("small/saved_model-int8-greedy", "small", "saved_model", 39.1, 100.0, 4.0)
    assert speed_picture.points(RESULTS, "32") == [point]


@pytest.mark.slow
@pytest.mark.nightly
def test_a_picture_is_written(tmp_path):
    results, picture = tmp_path / "speed.json", tmp_path / "speed.png"
    results.write_text(json.dumps(RESULTS))
    assert speed_picture.main([f"--results={results}", f"--output={picture}"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
