"""`t2t-query-server`: one line in, one line out, or one line of error."""

import io
import os
import signal
import subprocess
import sys
import threading
from functools import partial

import pytest
import tensorflow as tf

from t2t_revival.cli import decoder
from tests.cli.conftest import refused
from tests.support.model_server import HOST, Refusal, echo
from tests.support.processes import TIMEOUT, run_command, start_command

run = partial(run_command, "t2t-query-server")
WITHOUT = """
import sys
from t2t_revival.cli import query_server
status = query_server.main(["t2t-query-server", *sys.argv[1:]])
assert not sys.modules.keys() & {"t2t_revival.model", "t2t_revival.serving.module", "keras_hub"}
sys.exit(status)
"""


@pytest.fixture(params=["grpc", "rest"])
def address(request, server):
    """Flags that name a server that answers lines in capitals."""
    server.predict = echo
    where = f"{HOST}:{server.grpc_port}" if request.param == "grpc" else f"http://{HOST}:{server.rest_port}"
    return [f"--server={where}", "--servable_name=echo"]


def test_an_interrupted_file_is_resumed(address, server, tmp_path, capsys):
    (tmp_path / "in").write_text("one\ntwo\nthree\nfour\nfive\n")
    asked = []

    def answer(name, signature, inputs):
        asked.append(inputs["inputs"])
        if len(asked) == 3:
            raise Refusal("INVALID_ARGUMENT", "no")
        return echo(name, signature, inputs)

    server.predict = answer
    files = f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'out'}"
    flags = [*files, "--batch_size=2"]
    said = ": invalid request: no; 4 of 5 lines are done and kept with"
    refused(capsys, run(*address, *flags), said, "out.part")
    assert (tmp_path / "out.part").read_text() == "ONE\nTWO\nTHREE\nFOUR\n"
    assert run(*address, *flags) == 0
    assert len(asked) == 4
    assert (tmp_path / "out").read_text() == "ONE\nTWO\nTHREE\nFOUR\nFIVE\n"
    assert "1 lines in" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "answer"), [("one text", "ONE TEXT\n"), ("", "\n")])
def test_one_text(address, capsys, text, answer):
    assert run(*address, f"--inputs_once={text}") == 0
    assert capsys.readouterr() == (answer, "")


def test_a_typed_line_has_its_beams_below_each_other(address, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\n"))
    assert run(*address, "--decode_hparams=beam_size=2,return_beams=True,write_beam_scores=True") == 0
    assert capsys.readouterr().out == "ONE\t0.00\nONE!\t-1.00\n"


def test_folders_without_a_model(tmp_path, capsys):
    flags = [f"--saved_model={tmp_path}", "--inputs_once=a"]
    refused(capsys, run(*flags), f"{tmp_path}: no exported model here; export one with t2t-exporter")
    other = tmp_path / "ctranslate2" / "1"
    other.mkdir(parents=True)
    (other / "model.bin").touch()
    for folder in (other, other.parent):
        arguments = [f"--saved_model={folder}", "--inputs_once=a"]
        refused(capsys, run(*arguments), f"{folder}: exported for CTranslate2, and no SavedModel")
    for version in ("9", "10", ".unfinished-x"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "saved_model.pb").write_bytes(b"damaged")
    refused(capsys, run(*flags), f"{tmp_path / '10'}: cannot be loaded (")
    tf.saved_model.save(tf.Module(), str(tmp_path / "11"))
    refused(capsys, run(*flags), f"{tmp_path / '11'}: not a SavedModel that t2t-exporter wrote")


@pytest.mark.slow
def test_ctrl_c_in_mid_call(address, server, tmp_path):
    process, ended = None, threading.Event()

    def interrupt(*request):
        process.send_signal(signal.SIGINT)
        ended.wait(TIMEOUT)  # an exit status can be read by one thread alone
        return echo(*request)

    server.predict = interrupt
    process = start_command(tmp_path, "t2t-query-server", *address, "--inputs_once=a")
    status = process.wait()
    ended.set()
    assert status == 130
    assert process.out == ""
    assert process.err.splitlines()[-1] == "t2t-query-server: error: interrupted"


@pytest.mark.slow
def test_a_folder_is_answered_as_the_decoder_does(out, export_dir, tmp_path, capsys):
    (tmp_path / "in").write_text("the dog\n\nder Hund sieht 3 Häuser 🦓\n", encoding="utf-8")
    options = "--decode_hparams=beam_size=3,extra_length=3,return_beams=True,write_beam_scores=True"
    flags = [options, f"--decode_from_file={tmp_path / 'in'}"]
    decoder.main(["t2t-decoder", f"--output_dir={out}", *flags, f"--decode_to_file={tmp_path / 'decoded'}"])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, f"--saved_model={export_dir}", *flags],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"},
    )
    assert done.returncode == 0, done.stderr
    decoded = (tmp_path / "decoded").read_text(encoding="utf-8").splitlines()
    for served, line in zip(done.stdout.splitlines(), decoded, strict=True):
        found = served.removesuffix("\t\t-inf")  # the model's search may find fewer different texts
        assert line == served or line.startswith(f"{found}\t")
    assert "E0000" not in done.stderr
    assert "WARNING" not in done.stderr
