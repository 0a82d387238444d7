"""Commands that do without TensorFlow, which takes seconds to import."""

import json
import re
import signal
import subprocess
import sys
from urllib.request import Request, urlopen

import pytest

from tests.support.model_server import HOST, ModelServer, echo

PROGRAM = """
import sys
from importlib import import_module
forbidden, *words = sys.argv[1:]
status = import_module("t2t_revival.cli." + words[0][4:].replace("-", "_")).main(words)
print("status", status, *sorted(sys.modules.keys() & {*forbidden.split(",")}))
"""
TENSORFLOW = "tensorflow,keras,jax"
RUN = "--problem=translate_ende --hparams_set=tiny"


COMMANDS = [
    ("t2t-bleu --translation=in --reference=in", 0, TENSORFLOW),
    ("t2t-bleu --translations_dir=all --reference=in --event_dir=events", 0, TENSORFLOW),
    ("t2t-parseval --gold=trees --predicted=trees", 0, TENSORFLOW),
    (
        "t2t-datagen --problem=translate_ende --data_dir=data --data_source=corpus",
        0,
        f"{TENSORFLOW},datasets",
    ),
    ("t2t-trainer --model=x --problem=image_mnist", 2, f"{TENSORFLOW},numpy"),
    (f"t2t-trainer {RUN} --data_dir=data --output_dir=out --train_steps=3", 1, TENSORFLOW),
    ("t2t-query-server --server={} --servable_name=echo --inputs_once=a", 0, "tensorflow,keras,numpy,grpc"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "status", "forbidden"), COMMANDS)
def test_it_is_not_imported(words, status, forbidden, trained, tmp_path):
    (tmp_path / "all").mkdir()
    for name in ("in", "all/ende-7"):
        (tmp_path / name).write_text("the dog sees houses\n")
    (tmp_path / "trees").write_text("(S (NN dog))\n")
    for name in ("corpus", "data", "out"):
        (tmp_path / name).symlink_to(trained / name)
    server = ModelServer(echo)
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        forbidden,
        *words.format(f"http://{HOST}:{server.rest_port}").split(),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    server.close()
    assert done.stdout.splitlines()[-1:] == [f"status {status}"], done.stderr


@pytest.mark.slow
def test_a_server_of_ctranslate2_does_not_import_it(out, tmp_path):
    """Two models translate and are described; only what makes a converted model, once, needs TensorFlow."""
    pytest.importorskip("ctranslate2")
    models = ", ".join(f"{{name: {name}, output_dir: {out}, engine: ctranslate2}}" for name in "ab")
    (tmp_path / "models.yaml").write_text(f"models: [{models}]\n")
    words = ["t2t-server", f"--config={tmp_path / 'models.yaml'}", "--port=0"]
    command = [sys.executable, "-c", PROGRAM, TENSORFLOW, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert server.stderr
        said = iter(server.stderr.readline, "")
        (address,) = re.findall(
            r"http://\S+\d", next(line for line in said if line.startswith("serving at "))
        )
        request = Request(
            f"{address}/translate", json.dumps({"text": ["the dog", "houses"], "model": "b"}).encode()
        )
        assert len(json.load(urlopen(request))["translations"]) == 2
        for path in ("/v1/models/a", "/v1/models/a/metadata", "/models", "/metrics", "/readyz"):
            assert urlopen(f"{address}{path}").status == 200
        server.send_signal(signal.SIGTERM)
        assert server.stdout.read() == "status 0\n"
