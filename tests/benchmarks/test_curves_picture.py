"""The picture of several learning curves."""

import curves_picture
import pytest

ROWS = "step,target_tokens,seconds,bleu,bleu/news\n100,2000000,60,10,5\n200,4000000,150,20,7.5\n"


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "dev.csv").write_text(ROWS)
    return folder


def test_scores_are_read_by_name(run):
    curve = curves_picture.read(f"mixed={run}:bleu/news", "seconds")
    assert curve == ("mixed", "bleu", [1.0, 2.5], [5.0, 7.5])


@pytest.mark.slow
@pytest.mark.nightly
def test_a_picture_is_written(run, tmp_path):
    picture = tmp_path / "curves.png"
    arguments = ["--panel", "title", f"a={run}", f"b={run}:bleu/news"] * 2
    assert curves_picture.main([*arguments, f"--output={picture}"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
