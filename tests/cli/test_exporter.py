"""`t2t-exporter`: a folder that TensorFlow alone loads, or one line of error and nothing written."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import tensorflow as tf
import yaml
from google.protobuf import text_format
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from t2t_revival import Translator
from t2t_revival.serving.export import WARMUP
from t2t_revival.serving.signatures import (
    DEFAULT,
    DESCRIBE,
    SCORE,
    WITH_OPTIONS,
    WITH_PREFIXES,
    WITH_SAMPLING,
    WITH_TABLES,
)
from tests.contract.decoding import PIECES, copied
from tests.support.processes import run_command

run = partial(run_command, "t2t-exporter")
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


def test_a_setting_of_the_models_own_is_told_from_one_that_was_given(tmp_path, capsys):
    folder = copied(PIECES, tmp_path)
    how = [f"--output_dir={folder}", "--format=bergamot"]
    assert run(*how)
    assert (
        "does not support extra_length=6, which is this model's own: give --decode_hparams=extra_length=50"
        in capsys.readouterr().err
    )
    assert run(*how, "--decode_hparams=extra_length=50,mbr=chrf")
    assert "does not support mbr=chrf: " in capsys.readouterr().err


@pytest.mark.slow
def test_another_process_gets_what_the_translator_gives(out, tmp_path, capsys):
    """One with TensorFlow and TensorFlow Text, but without this package."""
    assert (
        run(f"--output_dir={out}", f"--export_dir={tmp_path / 'e'}", "--decode_hparams=extra_length=3") == 0
    )
    (version,) = (path for path in (tmp_path / "e").iterdir() if path.is_dir())
    said = capsys.readouterr().out
    assert str(version) in said
    assert "tensorflow_model_server" in said
    command = [sys.executable, "-c", ASK, str(version), json.dumps(LINES)]
    usual, more = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    translator = Translator.load(out, decode_hparams="extra_length=3")
    assert usual == [[text] for text in translator.translate(LINES)]
    other = Translator.load(out, decode_hparams="beam_size=3,alpha=0.0,extra_length=2")
    expected = [[t.text for t in outputs] for outputs in other.nbest(LINES, n=2)]
    assert more == [[*texts, ""][:2] for texts in expected]


@pytest.mark.slow
def test_what_tensorflow_serving_reads(out):
    assert run(f"--output_dir={out}", "--decode_hparams=extra_length=3") == 0
    folder = out / "export"
    config = text_format.Parse((folder / "models.config").read_text(), ModelServerConfig())
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path) == ("translate_ende", "/models/translate_ende")
    service = yaml.safe_load((folder / "compose.yaml").read_text())["services"]["translate_ende"]
    assert service["volumes"] == [".:/models/translate_ende:ro"]
    for flag in service["command"]:
        if "_file=" in flag:
            assert (folder / Path(flag).name).exists()

    (version,) = (path for path in folder.iterdir() if path.is_dir())
    loaded = tf.saved_model.load(version)
    logs = list(tf.data.TFRecordDataset(str(version / WARMUP)).as_numpy_iterator())
    signatures = set()
    for log in logs:
        request = PredictionLog.FromString(log).predict_log.request
        assert request.model_spec.name == "translate_ende"
        inputs = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
        assert len({len(values) for values in inputs.values()}) == 1, "batching joins calls by their lines"
        answer = loaded.signatures[request.model_spec.signature_name](
            **{name: tf.constant(values) for name, values in inputs.items()}
        )
        assert {value.shape[0] for value in answer.values()} == {len(inputs["inputs"])}
        signatures.add(request.model_spec.signature_name)
    assert signatures == {DEFAULT, DESCRIBE, SCORE, WITH_OPTIONS, WITH_PREFIXES, WITH_SAMPLING, WITH_TABLES}


@pytest.mark.slow
def test_versions_rise_and_what_is_there_stays(out, capsys):
    (out / "export" / "99999999999").mkdir(parents=True)
    (out / "export" / "compose.yaml").write_text("mine")
    assert run(f"--output_dir={out}") == 0
    assert (out / "export" / "100000000000" / "saved_model.pb").exists()
    assert (out / "export" / "compose.yaml").read_text() == "mine"
    assert not list((out / "export").glob(".*"))


@pytest.mark.slow
def test_fewer_bits(out):
    assert run(f"--output_dir={out}", "--quantize=int8_weights") == 0
    (version,) = (path for path in (out / "export").iterdir() if path.is_dir())
    reader = tf.train.load_checkpoint(str(version / "variables" / "variables"))
    assert tf.int8 in reader.get_variable_to_dtype_map().values()


def test_without_ctranslate2(out, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert run(f"--output_dir={out}", "--format=ctranslate2") == 1
    assert "CTranslate2's format needs ctranslate2" in capsys.readouterr().err
    assert not (out / "ctranslate2").exists()


@pytest.mark.slow
@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_for_litert(out, capsys, quantize):
    """The example that is printed translates a line, as the translator does where weights are float32."""
    pytest.importorskip("ai_edge_litert.interpreter")
    options = "--decode_hparams=beam_size=1,extra_length=3"
    assert run(f"--output_dir={out}", "--format=litert", f"--quantize={quantize}", options) == 0
    steps = capsys.readouterr().out.split("with ai-edge-litert:\n")[1].replace('"..."', repr(LINES[0]))
    names = ("ai_edge_litert", "sentencepiece", "numpy")
    exec(steps, {name: sys.modules[name] for name in names})
    (printed,) = capsys.readouterr().out.splitlines()
    expected = Translator.load(out, decode_hparams="beam_size=1,extra_length=3").translate(LINES[0])
    assert printed == expected if quantize == "none" else printed
    assert not (out / "export").exists()


def test_a_full_disk(out, capsys, monkeypatch):
    def full(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "{{function_node}} No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", full)
    assert run(f"--output_dir={out}") == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert "the disk is full" in line
    assert not [path for path in (out / "export").iterdir() if path.is_dir()]
