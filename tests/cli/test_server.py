"""`t2t-server`: a trained model behind HTTP, and what it says when it cannot serve."""

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest
import requests

from t2t_revival import Translator
from t2t_revival.cli import exporter, query_server, server
from tests.cli.conftest import refused
from tests.cli.served import Server

LINES = ["the dog sees dev1 houses", "", "houses", "the dog sees the dog sees the dog", "Hund"]


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Starts servers, whose temporary files are in `tmp_path`, and ends those that a test has not ended."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    started = []

    def start(*flags, waits=True):
        started.append(Server(tmp_path / f"server {len(started)}", *map(str, flags), waits=waits))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGTERM)
            one.process.wait()


@pytest.fixture
def export(out, export_dir):
    """The folder of an exported model, which a test may change."""
    return shutil.copytree(export_dir, out / "export")


@contextmanager
def asking(answers, running, text, **request):
    """Sends a request to translate, whose answer is there after the block."""
    thread = threading.Thread(target=lambda: answers.append(running.post("/translate", text=text, **request)))
    thread.start()
    yield
    thread.join()


@pytest.mark.slow
def test_an_output_dir_is_served(trained, tmp_path, serve, capsys):
    expected = [outputs[0].text for outputs in Translator.load(trained / "out").nbest(LINES)]
    running = serve(f"--output_dir={trained / 'out'}")
    rows = running.post("/v1/models/translate_ende:predict", instances=LINES).json()["predictions"]
    assert [row["outputs"][0] for row in rows] == expected
    alone = [running.post("/v1/models/translate_ende:predict", instances=[line]).json() for line in LINES]
    assert [answer["predictions"][0]["outputs"] for answer in alone] == [row["outputs"] for row in rows]
    answer = running.post("/translate", text=LINES, options={"beam_size": 2, "n": 2}).json()
    assert [one["text"] for one in answer["translations"]] == expected
    assert answer["version"] == 7
    (tmp_path / "in").write_text("\n".join(LINES) + "\n")
    flags = [f"--server={running.address}", "--servable_name=translate_ende"]
    files = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'out'}"]
    assert query_server.main(["t2t-query-server", *flags, *files]) == 0
    assert (tmp_path / "out").read_text().splitlines() == expected
    running.process.send_signal(signal.SIGTERM)
    said = running.process.end().splitlines()
    assert said[-1] == "ended: all requests are answered"
    assert f"next: t2t-query-server --server={running.address} --servable_name=translate_ende" in said


@pytest.fixture
def three(trained, tmp_path):
    """The flag of three models, which are loaded one after the other."""
    models = (f"{{name: {name}, output_dir: {trained / 'out'}}}" for name in "abc")
    (tmp_path / "models.yaml").write_text(f"models: [{', '.join(models)}]\n")
    return f"--config={tmp_path / 'models.yaml'}"


@pytest.mark.nightly
@pytest.mark.slow
def test_the_port_is_open_while_models_are_loaded(three, serve):
    running = serve(three, "--timeout_secs=120", waits=False)
    seen, answers = [], []
    with asking(answers, running, "a", model="c"):
        while not seen or seen[-1][1] != "ready":
            ready = requests.get(f"{running.address}/readyz", timeout=60)
            state = ready.status_code, ready.json()["status"], ready.headers.get("retry-after")
            seen += [state] if state not in seen else []
            assert requests.get(f"{running.address}/healthz", timeout=60).status_code == 200
            assert requests.get(f"{running.address}/models", timeout=60).status_code == 200
            time.sleep(0.05)
    assert answers[0].json()["model"] == "c"
    assert running.post("/translate", text="the dog", options={"avoid": ["a"]}, model="c").ok
    assert seen[:3] == [(503, f"loading {n} of 3", "1") for n in (1, 2, 3)]
    assert seen[-1] == (200, "ready", None)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_server_that_loads_at_once(three, serve, tmp_path, number, status):
    """A request that waits for the model is answered."""
    running, answers = serve(three, waits=False), []
    with asking(answers, running, "the dog", model="c"):
        time.sleep(0.3)
        began = time.monotonic()
        running.process.send_signal(number)
        assert running.process.wait() == status
        assert time.monotonic() - began < 5
    assert answers[0].status_code == 503
    assert not list(tmp_path.glob("t2t-server-*"))


@pytest.mark.nightly
@pytest.mark.slow
def test_messages_name_no_folder_of_the_server(trained, serve):
    running = serve(f"--output_dir={trained / 'out'}")
    columns = {"inputs": ["the dog"], "beam_size": 2, "alpha": 0.6, "extra_length": 5, "n": 1}
    for signature, inputs, message in (
        ("translate_with_options", columns | {"beam_size": 0}, "beam_size must be between 1 and 100: 0"),
        ("translate_with_options", columns | {"n": 3}, "n must be between 1 and beam_size: 3"),
        (
            "score",
            {"inputs": ["a"], "targets": ["b"], "alternatives": -1},
            "alternatives must be between 0 and ",
        ),
    ):
        predict = {"signature_name": signature, "inputs": inputs}
        answer = running.post("/v1/models/translate_ende:predict", **predict)
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(f"translate_ende: {message}")


@pytest.mark.nightly
@pytest.mark.slow
def test_a_killed_server_leaves_no_files_and_starts_again(trained, serve, tmp_path):
    flags = [f"--output_dir={trained / 'out'}"]
    running = serve(*flags)
    before = running.post("/translate", text=LINES).json()
    running.process.kill()
    assert not list(tmp_path.glob("t2t-server-*"))
    again = serve(*flags, f"--port={running.address.rpartition(':')[2]}")
    assert again.post("/translate", text=LINES).json() == before


@pytest.mark.slow
def test_ctranslate2_serves_an_output_dir(out, serve):
    pytest.importorskip("ctranslate2")
    expected = Translator.load(out, engine="ctranslate2").nbest(LINES)
    running = serve(f"--output_dir={out}", "--engine=ctranslate2", "--checkpoint=newest")
    answer = running.post("/translate", text=LINES).json()
    assert [one["text"] for one in answer["translations"]] == [outputs[0].text for outputs in expected]
    assert running.post("/explain", text=LINES[0]).json()["output"] == expected[0][0].text
    refusal = running.post("/translate", text="a", options={"sampling_method": "random"})
    assert refusal.status_code == 400
    assert "does not support sampling_method" in refusal.json()["error"]
    assert "is served by ctranslate2, float32" in running.process.err


@pytest.mark.nightly
@pytest.mark.slow
def test_a_new_version_takes_over_without_a_failed_request(out, export, serve, write_checkpoint):
    (first,) = (int(path.name) for path in export.iterdir() if path.name.isdecimal())
    running = serve(f"--saved_model={export}")
    answers, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            answers.append(running.post("/translate", text=LINES))
            time.sleep(0.2)  # the exporter needs a core, too

    threads = [threading.Thread(target=ask) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        damaged = export / str(first + 1)
        damaged.mkdir()
        (damaged / "saved_model.pb").write_bytes(b"no model")
        running.process.wait_for("is refused")
        write_checkpoint(out, 9)
        assert exporter.main(["t2t-exporter", f"--output_dir={out}"]) == 0
        running.process.wait_for("no longer served")
        before = len(answers)
        while len(answers) < before + 4:  # of threads that had asked the old one
            time.sleep(0.02)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    newest = max(int(path.name) for path in export.iterdir() if path.name.isdecimal())
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()["version"] for answer in answers} == {first, newest}


@pytest.mark.slow
def test_requests_are_answered_before_the_server_ends(trained, serve):
    running, answers = serve(f"--output_dir={trained / 'out'}"), []
    text = [f"{line} {n}" for n in range(20) for line in LINES]
    with asking(answers, running, text):
        while "t2t_queue_lines 0.0" in requests.get(f"{running.address}/metrics").text:
            time.sleep(0.02)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait() == 0
    assert len(answers[0].json()["translations"]) == len(text)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_log_whose_disk_is_full(export):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "t2t_revival.cli.server", f"--saved_model={export}"]
    with open("/dev/full", "w") as full:
        process = subprocess.Popen([*command, f"--port={port}", "--access_log"], stderr=full, stdout=full)
    try:
        ends = time.monotonic() + 120
        while time.monotonic() < ends and process.poll() is None:
            with suppress(requests.ConnectionError):
                answer = requests.post(f"http://localhost:{port}/translate", json={"text": LINES}, timeout=90)
                break
            time.sleep(0.1)
        assert len(answer.json()["translations"]) == len(LINES)
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.slow
def test_a_damaged_model(tmp_path, serve):
    """In a process of its own: in pytest, uvicorn closes the stream that absl had logged to."""
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "saved_model.pb").write_bytes(b"no model")
    running = serve(f"--saved_model={tmp_path}", "--servable_name=m", waits=False)
    assert running.process.wait() == 1
    *_, refused_version, error = running.process.err.splitlines()
    assert refused_version.startswith(f"m: version 3 is refused: {tmp_path}")
    assert error.startswith("t2t-server: error: m: version 3: cannot be loaded")


def test_a_port_that_is_taken(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = [f"--port={port}", f"--saved_model={tmp_path}"]
        refused(capsys, server.main(["t2t-server", *flags]), f"--port={port}: Address already in use")


def test_a_package_that_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    refused(capsys, server.main(["t2t-server", "--saved_model=x"]), "t2t-server needs uvicorn")
