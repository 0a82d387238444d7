"""Load on a server, and what is an error."""

import asyncio
import re
import socket
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
import serve_load

from tests.support import commands

OUTPUT_DIR = Path(__file__).parents[1] / "contract" / "models" / "pieces"
ANSWER = b'{"translations": []}'


@contextmanager
def answering(*answers):
    """A server that gives its answers in turn, the last again and again, and closes after one without end."""
    listener = socket.create_server(("127.0.0.1", 0))
    left = list(answers)

    def serve(connection):
        with connection:
            while connection.recv(65536):
                answer = left.pop(0) if len(left) > 1 else left[0]
                connection.sendall(answer)
                if not answer.endswith(ANSWER):
                    return

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def http(status, body=ANSWER):
    return b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body


def translate(port, times=1):
    async def run():
        client = serve_load.Client(port)
        return [await client.translate("a dog") for _ in range(times)]

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "error"), [(http(503, b"full"), RuntimeError), (http(200)[:10], asyncio.IncompleteReadError)]
)
def test_an_error_or_half_an_answer_is_none(answer, error):
    with answering(http(200), answer, http(200)) as port, pytest.raises(error):
        translate(port, 2)


@pytest.mark.slow
@pytest.mark.nightly
def test_all_measurements(tmp_path, capsys):
    commands.run("t2t-exporter", f"--output_dir={OUTPUT_DIR}", f"--export_dir={tmp_path / 'export'}")
    (tmp_path / "lines").write_text("the dog sleeps\n" * 64)
    flags = [f"--saved_model={tmp_path / 'export'}", f"--inputs={tmp_path / 'lines'}", "--clients=1,4"]
    flags += ["--rounds=1", "--seconds=0.5", "--swaps=2", "--soak_minutes=0.05"]
    serve_load.measure(serve_load.parser().parse_args(flags))
    said = capsys.readouterr().out
    for line in (
        r"round 1: bare model +\d",
        r"    4: lines/s \d.*, of the bare model \d",
        r"one line, ms: model p50 .*; server p50 .*; added -?\d",
        r"requests/s: ms p50 .*; p99 is .* times the median",
        r"2 swaps, [\d,]+ requests, no error",
        r"soak: \d+ requests",
        r"memory by thirds, MiB: \d+, \d+, \d+; third / second \d",
    ):
        assert re.search(line, said), (line, said)
