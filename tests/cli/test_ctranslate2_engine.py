"""`--engine=ctranslate2` of the commands that decode."""

import subprocess
import sys

import pytest

from t2t_revival.addons.ctranslate2.format import FOLDER, MODEL
from t2t_revival.cli import eval as eval_command
from tests.cli.decoder_command import DECODE, decode

pytest.importorskip("ctranslate2")
ENGINE = "--engine=ctranslate2"
DECODE_WITHOUT_TENSORFLOW = """
import sys
from t2t_revival.cli import decoder
status = decoder.main(sys.argv)
sys.exit(status or "tensorflow" in sys.modules)
"""


@pytest.mark.slow
def test_a_file_and_without_tensorflow_once_it_is_converted(out, tmp_path, capsys):
    text = tmp_path / "in"
    text.write_text("the dog\n\nsees 3 houses\n")
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
def test_each_checkpoint_is_scored_and_the_newest_conversion_kept(out, capsys, write_checkpoint):
    write_checkpoint(out, 9)
    assert eval_command.main(["t2t-eval", f"--output_dir={out}", ENGINE]) == 0
    captured = capsys.readouterr()
    assert [line.split()[0] for line in captured.out.splitlines()[1:3]] == ["7", "9"]
    assert captured.err.count("converting model.ckpt-") == 2
    assert [path.name for path in (out / FOLDER).iterdir()] == [MODEL]
    assert eval_command.main(["t2t-eval", f"--output_dir={out}"]) == 0
    assert capsys.readouterr().err.count("scoring ") == 2, "TensorFlow's outputs are others"
