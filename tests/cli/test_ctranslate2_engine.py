"""`--engine=ctranslate2` of the commands that decode."""

import subprocess
import sys

import pytest

from t2t_revival.cli import eval as eval_command
from t2t_revival.decoding.converted_model import FOLDER, MODEL
from tests.support.decoder_command import DECODE, decode

pytest.importorskip("ctranslate2")
ENGINE = "--engine=ctranslate2"
TEXT = "the dog\n\nsees 3 houses\n"
DECODE_WITHOUT_TENSORFLOW = """
import sys
from t2t_revival.cli import decoder
status = decoder.main(sys.argv)
sys.exit(status or "tensorflow" in sys.modules)
"""


@pytest.fixture
def text(tmp_path):
    """A file to translate."""
    (tmp_path / "in").write_text(TEXT)
    return tmp_path / "in"


@pytest.mark.slow
def test_a_file_and_without_tensorflow_once_it_is_converted(out, text, capsys):
    assert decode(out, f"--decode_from_file={text}", ENGINE, "--precision=int8") == 0
    captured = capsys.readouterr()
    assert [bool(line) for line in captured.out.split("\n")] == [True, False, True, False]
    assert f"kept in {out / FOLDER}" in captured.err
    command = [sys.executable, "-c", DECODE_WITHOUT_TENSORFLOW, f"--output_dir={out}", ENGINE]
    flags = f"--decode_from_file={text}", "--precision=int8", f"--decode_hparams={DECODE}"
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, captured.out), done.stderr
    assert "converting" not in done.stderr


@pytest.mark.slow
def test_a_split_and_scores(out, tmp_path, capsys):
    assert decode(out, ENGINE) == 0
    assert "BLEU" in capsys.readouterr().out
    (tmp_path / "pairs").write_text("the dog\tder Hund\n")
    found = []
    for engine in (ENGINE, "--engine=tensorflow"):
        assert decode(out, engine, f"--score_file={tmp_path / 'pairs'}") == 0
        found.append(float(capsys.readouterr().out))
    assert found[0] == pytest.approx(found[1], rel=0.01)  # PAD has a probability in this random model


@pytest.mark.parametrize("command", ["decoder", "eval"])
def test_without_the_package(out, text, command, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    if command == "decoder":
        assert decode(out, f"--decode_from_file={text}", ENGINE) == 1
    else:
        assert eval_command.main(["t2t-eval", f"--output_dir={out}", ENGINE]) == 1
    assert "CTranslate2 is not installed, or too old: pip install -U ctranslate2" in capsys.readouterr().err


@pytest.mark.slow
def test_each_checkpoint_is_scored_and_the_newest_conversion_kept(out, capsys, write_checkpoint):
    write_checkpoint(out, 9)
    assert eval_command.main(["t2t-eval", f"--output_dir={out}", ENGINE]) == 0
    captured = capsys.readouterr()
    assert [line.split()[0] for line in captured.out.splitlines()[1:3]] == ["7", "9"]
    assert captured.err.count("converting model.ckpt-") == 2
    assert [path.name for path in (out / FOLDER).iterdir()] == [MODEL]
    assert eval_command.main(["t2t-eval", f"--output_dir={out}"]) == 0
    assert capsys.readouterr().err.count("scoring ") == 2, "TensorFlow's outputs are others"
