"""The pictures of learning curves and of decoding speed."""

import json

import plots
import pytest

ROWS = "step,target_tokens,seconds,bleu,bleu/news\n100,2000000,60,10,5\n200,4000000,150,20,7.5\n"
TIMES = [{"sentences": 100, "seconds": seconds} for seconds in (0.5, 1, 4)]
FAST, SLOW = "student/ctranslate2-int8-greedy", "teacher/t2t-decoder-ctranslate2-int8"
SPEED = [
    {"name": FAST, "windows": {"8": [], "32": TIMES}, "milliseconds": [3, 9, 4], "bleu": 38.1},
    {"name": SLOW, "windows": {"32": TIMES[-1:]}, "milliseconds": [50], "bleu": 39},
    {"name": "teacher/litert-int8", "windows": {}, "milliseconds": [], "bleu": float("nan")},
]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "dev.csv").write_text(ROWS)
    (tmp_path / "speed.json").write_text(json.dumps({"commit": "", "results": SPEED}))
    return tmp_path


def test_what_is_drawn(files):
    assert plots.read_curve(f"a={files}", "target_tokens") == ("a", "bleu", [2, 4], [10, 20])
    assert plots.read_curve(f"a={files}:bleu/news", "seconds") == ("a", "bleu", [1, 2.5], [5, 7.5])
    assert plots.points(SPEED, "32") == [
        (FAST, "student", "ctranslate2", 38.1, 100, 4),
        (SLOW, "teacher", "t2t-decoder", 39, 25, 50),
    ]


@pytest.mark.slow
@pytest.mark.nightly
def test_pictures_are_written(files):
    curves = ["--panel", "title", f"a={files}", f"b={files}:bleu/news"] * 2
    for command, *flags in (["curves", *curves], ["speed", f"--results={files / 'speed.json'}"]):
        picture = files / f"{command}.png"
        plots.main([command, *flags, f"--output={picture}"])
        assert picture.read_bytes().startswith(b"\x89PNG")
