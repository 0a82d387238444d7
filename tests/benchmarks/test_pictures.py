"""The pictures of learning curves and of decoding speed."""

import json

import curves_picture
import pytest
import speed_picture

ROWS = "step,target_tokens,seconds,bleu,bleu/news\n100,2000000,60,10,5\n200,4000000,150,20,7.5\n"
SPEED = {
    "small/saved_model-int8-greedy": {
        "windows": {"32": [{"sentences": 100, "seconds": 0.5}]},
        "milliseconds": [3.0, 9.0, 4.0],
        "bleu": 39.1,
    },
    "tiny/tensor2tensor-float32": {"windows": {}, "milliseconds": [], "bleu": float("nan")},
}


@pytest.mark.slow
@pytest.mark.nightly
def test_pictures_are_written(tmp_path):
    (tmp_path / "dev.csv").write_text(ROWS)
    (tmp_path / "speed.json").write_text(json.dumps(SPEED))
    curves = ["--panel", "title", f"a={tmp_path}", f"b={tmp_path}:bleu/news"] * 2
    for script, flags in (
        (curves_picture, curves),
        (speed_picture, [f"--results={tmp_path / 'speed.json'}"]),
    ):
        picture = tmp_path / f"{script.__name__}.png"
        assert script.main([*flags, f"--output={picture}"]) == 0
        assert picture.read_bytes().startswith(b"\x89PNG")
