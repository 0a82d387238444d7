"""Files and lines that t2t-decoder and t2t-query-server read and write alike."""

import gzip
import io
import os
import sys
import threading

import pytest

from tests.support.model_server import HOST, ModelServer, echo
from tests.support.processes import run_command

pytestmark = pytest.mark.slow

LINES = "the dog\n\nsees 3 Häuser\n".encode()
FORMS = {
    "in": b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n", 1).rstrip(),
    "in.gz": gzip.compress(LINES),
    "packed": gzip.compress(LINES),
}


@pytest.fixture(scope="module")
def server():
    server = ModelServer(echo)
    yield server
    server.close()


@pytest.fixture(params=["decoder", "grpc", "rest"])
def client(request, trained, server):
    """Command, flags of a model or a server, and flags of typed lines."""
    if request.param == "decoder":
        model = f"--output_dir={trained / 'out'}", "--decode_hparams=beam_size=1,extra_length=1"
        return ["t2t-decoder", *model], ["--decode_interactive"]
    where = f"{HOST}:{server.grpc_port}" if request.param == "grpc" else f"http://{HOST}:{server.rest_port}"
    return ["t2t-query-server", f"--server={where}", "--servable_name=echo"], []


@pytest.fixture
def typed(monkeypatch):
    def write(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))

    return write


def test_lines_may_come_in_any_form(client, typed, tmp_path, capsys):
    """UTF-8 with and without a mark, ends of lines, gzip under any name, a pipe, the standard streams."""
    command, _ = client
    (tmp_path / "lines").write_bytes(LINES)
    for name, content in FORMS.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[LINES], daemon=True).start()
    outputs = []
    for name in ("lines", *FORMS, "pipe"):
        files = f"--decode_from_file={tmp_path / name}", f"--decode_to_file={tmp_path / f'{name}.out'}"
        assert run_command(*command, *files) == 0
        said = capsys.readouterr()
        assert said.out == ""
        assert "3 lines in 0:" in said.err or "3 sentences in 0:" in said.err
        outputs.append((tmp_path / f"{name}.out").read_text(encoding="utf-8"))
    assert [bool(line) for line in outputs[0].split("\n")] == [True, False, True, False]
    assert outputs[0] == LINES.decode().upper() or command[0] == "t2t-decoder"
    typed(LINES)
    assert run_command(*command, "--decode_from_file=-") == 0
    assert {*outputs, capsys.readouterr().out} == {outputs[0]}


def test_no_lines(client, typed, tmp_path, capsys):
    command, interactive = client
    (tmp_path / "in").touch()
    assert run_command(*command, f"--decode_from_file={tmp_path / 'in'}") == 0
    typed(b"")
    assert run_command(*command, *interactive) == 0
    assert capsys.readouterr().out == ""


def test_typed_lines(client, typed, capsys):
    """The last one need not end; one that is not UTF-8 ends the command."""
    command, interactive = client
    typed(b"one\n\ntwo")
    assert run_command(*command, *interactive) == 0
    found = capsys.readouterr().out
    assert [bool(line) for line in found.split("\n")] == [True, False, True, False]
    assert found == "ONE\n\nTWO\n" or command[0] == "t2t-decoder"
    typed(b"b\xe4d\n")
    assert run_command(*command, *interactive) == 1
    assert "error: standard input: not UTF-8" in capsys.readouterr().err
