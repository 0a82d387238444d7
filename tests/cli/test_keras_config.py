"""Commands and Python code where Keras is configured for another program."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from t2t_revival.checkpoints.directory import list_checkpoints

pytestmark = pytest.mark.slow

FILE = "--decode_from_file=in"
FLAGS = {
    "decoder": [FILE],
    "eval": [],
    "exporter": [],
    "align": ["--source=in", "--target=in"],
    "attention": ["--input=the dog"],
    "translate_all": ["--source=in", "--translations_dir=all"],
    "trainer": ["--problem=translate_ende", "--hparams_set=tiny"],
}
LOAD = "from t2t_revival import Translator; Translator.load('out')"
TRAIN = """
import pathlib
from t2t_revival import Experiment, RunConfig, registry
data = registry.problem("translate_ende").open("data")
Experiment(data, registry.hparams("tiny"), "tiny", RunConfig(pathlib.Path("new"))).run()
"""


def python(folder, code, *flags, **variables):
    """Runs Python code in a new process; returns the exit status and what was said last."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERAS_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *flags],
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


def command(folder, name, *flags, **variables):
    code = f"import sys; from t2t_revival.cli.{name} import main; sys.argv[0] = {name!r}; sys.exit(main())"
    return python(folder, code, *flags, **variables)


@pytest.fixture
def folder(trained, tmp_path):
    for name in ("data", "out"):
        (tmp_path / name).symlink_to(trained / name)
    (tmp_path / "in").write_text("the dog\n")
    return tmp_path


def keras_json(folder, **values):
    """Writes keras.json; returns its folder for KERAS_HOME."""
    (folder / "keras.json").write_text(json.dumps(values))
    return str(folder)


@pytest.mark.parametrize(
    "name",
    ["decoder", *(pytest.param(name, marks=pytest.mark.nightly) for name in FLAGS if name != "decoder")],
)
def test_a_backend_that_runs_no_models_is_an_error_of_one_line(folder, name):
    out = "--output_dir=new" if name == "trainer" else "--output_dir=out"
    data = ["--data_dir=data"] if name in ("trainer", "eval") else []
    status, said = command(folder, name, out, *data, *FLAGS[name], KERAS_BACKEND="torch")
    assert status == 1
    assert "Traceback" not in said
    assert said.splitlines()[-1] == (
        f"{name}: error: KERAS_BACKEND=torch: models run with tensorflow or jax: set KERAS_BACKEND to one of "
        "them, before Keras is imported"
    )


@pytest.mark.nightly
def test_a_command_takes_what_it_needs_in_place_of_keras_json(folder):
    home = keras_json(folder, backend="openvino", floatx="float16", epsilon=0.5)
    hparams = "num_hidden_layers=1,hidden_size=8,filter_size=8,num_heads=2,batch_size=256,max_length=30"
    flags = f"--problem=translate_ende --hparams_set=tiny --data_dir=data --hparams={hparams}".split()
    steps = "--train_steps=2", "--local_eval_frequency=2", "--eval_bleu_sentences=2"
    weights = []
    for out, variables in (("plain", {}), ("other", {"KERAS_HOME": home})):
        status, said = command(folder, "trainer", *flags, *steps, f"--output_dir={out}", **variables)
        assert status == 0, said
        with np.load(list_checkpoints(folder / out)[-1].path) as arrays:
            weights.append({name: arrays[name] for name in arrays.files if arrays[name].dtype == np.float32})
    assert weights[0].keys() == weights[1].keys()
    for name, array in weights[0].items():
        np.testing.assert_array_equal(array, weights[1][name], err_msg=name)


@pytest.mark.parametrize("code", [LOAD, TRAIN])
def test_python_says_what_to_set(folder, code):
    status, said = python(folder, code, KERAS_HOME=keras_json(folder, floatx="float16"))
    assert status == 1
    assert "T2TError: Keras's floatx is float16, by" in said.splitlines()[-1]
    assert said.rstrip().endswith('call keras.config.set_floatx("float32")')
