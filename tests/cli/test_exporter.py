"""`t2t-exporter`: a folder that TensorFlow alone loads, or one line of error and nothing written."""

import json
import subprocess
import sys

import pytest

from t2t_revival.cli import exporter
from t2t_revival.decoding.translator import Translator

LINES = ["the dog sees 3 houses", "", "der Hund sieht Häuser 🦓"]
ASK = """
import json, sys
import tensorflow as tf
import tensorflow_text
loaded = tf.saved_model.load(sys.argv[1])
lines = tf.constant(json.loads(sys.argv[2]))
found = loaded.signatures["serving_default"](inputs=lines)
options = {"beam_size": tf.constant([3]), "alpha": tf.constant([0.0]), "extra_length": tf.constant([2])}
more = loaded.signatures["translate_with_options"](inputs=lines, n=tf.constant([2]), **options)
assert not [name for name in sys.modules if name.startswith(("t2t_revival", "keras_hub"))]
texts = lambda answer: [[text.decode() for text in row] for row in answer["outputs"].numpy()]
print(json.dumps([texts(found), texts(more)]))
"""


def run(*arguments):
    return exporter.main(["t2t-exporter", *map(str, arguments)])


def asked(folder):
    """What a process that has TensorFlow and TensorFlow Text, and not this package, gets from the folder."""
    command = [sys.executable, "-c", ASK, str(folder), json.dumps(LINES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_another_process_gets_what_the_translator_gives(out, tmp_path, capsys):
    assert (
        run(f"--output_dir={out}", f"--export_dir={tmp_path / 'e'}", "--decode_hparams=extra_length=3") == 0
    )
    (version,) = (tmp_path / "e").iterdir()
    said = capsys.readouterr().out
    assert str(version) in said
    assert "tensorflow_model_server" in said
    usual, more = asked(version)
    translator = Translator.load(out, decode_hparams="extra_length=3")
    assert usual == [[text] for text in translator.translate(LINES)]
    other = Translator.load(out, decode_hparams="beam_size=3,alpha=0.0,extra_length=2")
    expected = [[t.text for t in outputs] for outputs in other.nbest(LINES, n=2)]
    assert more == [[*texts, ""][:2] for texts in expected]


@pytest.mark.slow
def test_versions_rise(out, capsys):
    (out / "export" / "99999999999").mkdir(parents=True)
    assert run(f"--output_dir={out}") == 0
    assert (out / "export" / "100000000000" / "saved_model.pb").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--decode_hparams=beam=4"], "beam_size"),
        (["--checkpoint_path=nowhere"], "nowhere"),
        (["--problem=translate_enfr"], "holds a model of translate_ende"),
    ],
)
def test_wrong_flags(out, capsys, flags, message):
    assert run(f"--output_dir={out}", *flags) == 1
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("t2t-exporter: error: ")
    assert message in line
    assert not (out / "export").exists()


def test_a_folder_that_cannot_be_written(out, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    assert run(f"--output_dir={out}", f"--export_dir={tmp_path / 'file'}") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path / "file") in line
    assert (tmp_path / "file").read_text() == "mine"
