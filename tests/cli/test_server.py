"""`t2t-server`: a trained model behind HTTP, and what it says when it cannot serve."""

import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
import requests

from t2t_revival.cli import exporter, query_server, server
from t2t_revival.decoding.translator import Translator
from tests.support.signals import INTERRUPTIBLE, beginning_with

LINES = ["the dog sees dev1 houses", "", "houses", "the dog sees the dog sees the dog", "Hund"]
START_SECS = 120


class Server:
    """A server in a process of its own, whose models are loaded, or whose port is open."""

    def __init__(self, *flags, waits=True):
        port = [] if any(flag.startswith("--port=") for flag in flags) else ["--port=0"]
        arguments = [sys.executable, "-m", "t2t_revival.cli.server", *port, *map(str, flags)]
        command = beginning_with(INTERRUPTIBLE, arguments)
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.said, self.address = [], ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.wait_for(lambda: self.address)
        if waits:
            self.wait_for(lambda: f"serving at {self.address}; Ctrl-C ends it" in self.said)

    def _read(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))
            if found := re.match(r"listening at (http://localhost:\d+);", line):
                self.address = found[1]

    def wait_for(self, condition):
        ends = time.monotonic() + START_SECS
        while not condition():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < ends, self.said
            time.sleep(0.02)

    def post(self, path, **request):
        return requests.post(self.address + path, json=request, timeout=START_SECS)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(60)
        self._reader.join()
        return status


def refused(capsys, flags, *parts):
    """Checks that the command ends with one line of error."""
    assert server.main(["t2t-server", *map(str, flags)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("t2t-server: error: ")
    for part in parts:
        assert str(part) in line


@pytest.mark.slow
def test_an_output_dir_is_served(trained, tmp_path, capsys):
    expected = [outputs[0].text for outputs in Translator.load(trained / "out").nbest(LINES)]
    running = Server(f"--output_dir={trained / 'out'}")
    try:
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
    finally:
        status = running.end()
    assert status == 0
    assert running.said[-1] == "ended: all requests are answered"
    assert f"next: t2t-query-server --server={running.address} --servable_name=translate_ende" in running.said
    assert not any("Traceback" in line for line in running.said)


@pytest.mark.slow
def test_the_port_is_open_while_models_are_loaded(trained, tmp_path):
    config = tmp_path / "models.yaml"
    models = (f"{{name: {name}, output_dir: {trained / 'out'}}}" for name in "abc")
    config.write_text(f"models: [{', '.join(models)}]\n")
    running = Server(f"--config={config}", f"--timeout_secs={START_SECS}", waits=False)
    seen, answers = [], []
    waiting = threading.Thread(target=lambda: answers.append(running.post("/translate", text="a", model="c")))
    waiting.start()  # as soon as the port is open
    try:
        while not seen or seen[-1][1] != "ready":
            ready = requests.get(f"{running.address}/readyz", timeout=60)
            state = ready.status_code, ready.json()["status"], ready.headers.get("retry-after")
            seen += [state] if state not in seen else []
            assert requests.get(f"{running.address}/healthz", timeout=60).status_code == 200
            assert requests.get(f"{running.address}/models", timeout=60).status_code == 200
            time.sleep(0.05)
        waiting.join()
        assert answers[0].json()["model"] == "c"
        assert running.post("/translate", text="the dog", options={"avoid": ["a"]}, model="c").ok
    finally:
        running.end()
    assert seen[:3] == [(503, f"loading {n} of 3", "1") for n in (1, 2, 3)]
    assert seen[-1] == (200, "ready", None)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0, 5])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_server_that_loads_at_once(trained, tmp_path, monkeypatch, seconds, number, status):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    """A request that waits for the model is answered."""
    running = Server(f"--output_dir={trained / 'out'}", waits=False)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(running.post("/translate", text="the dog")))
    if seconds:
        waiting.start()
        time.sleep(seconds)
    began = time.monotonic()
    assert running.end(number) == status
    assert time.monotonic() - began < 5
    if seconds:
        waiting.join()
        assert answers[0].status_code == 503
    assert not list(tmp_path.glob("t2t-server-*"))


@pytest.mark.slow
def test_messages_name_no_folder_of_the_server(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    running = Server(f"--output_dir={trained / 'out'}")
    try:
        columns = {"inputs": ["the dog"], "beam_size": 0, "alpha": 0.6, "extra_length": 5, "n": 1}
        predict = {"signature_name": "translate_with_options", "inputs": columns}
        answer = running.post("/v1/models/translate_ende:predict", **predict)
        assert answer.status_code == 400
        message = "translate_ende: beam_size must be between 1 and 100: 0"
        assert answer.json() == {"error": message}
        predict["inputs"] = columns | {"beam_size": 2, "n": 3}
        answer = running.post("/v1/models/translate_ende:predict", **predict)
        assert answer.json() == {"error": "translate_ende: n must be between 1 and beam_size: 3"}
        predict = {
            "signature_name": "score",
            "inputs": {"inputs": ["a"], "targets": ["b"], "alternatives": -1},
        }
        answer = running.post("/v1/models/translate_ende:predict", **predict)
        assert answer.json()["error"].startswith("translate_ende: alternatives must be between 0 and ")
    finally:
        running.end()


@pytest.mark.slow
def test_a_killed_server_leaves_no_files_and_starts_again(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    flags = [f"--output_dir={trained / 'out'}"]
    running = Server(*flags)
    try:
        before = running.post("/translate", text=LINES).json()
    finally:
        running.end(signal.SIGKILL)
    assert not list(tmp_path.glob("t2t-server-*"))
    again = Server(*flags, f"--port={running.address.rpartition(':')[2]}")
    try:
        assert again.post("/translate", text=LINES).json() == before
    finally:
        again.end()


@pytest.mark.slow
def test_ctranslate2_serves_an_output_dir(trained):
    pytest.importorskip("ctranslate2")
    expected = Translator.load(trained / "out", engine="ctranslate2").nbest(LINES)
    running = Server(f"--output_dir={trained / 'out'}", "--engine=ctranslate2", "--checkpoint=newest")
    try:
        answer = running.post("/translate", text=LINES).json()
        assert [one["text"] for one in answer["translations"]] == [outputs[0].text for outputs in expected]
        assert running.post("/explain", text=LINES[0]).json()["output"] == expected[0][0].text
        refusal = running.post("/translate", text="a", options={"sampling_method": "random"})
        assert refusal.status_code == 400
        assert "does not sample" in refusal.json()["error"]
    finally:
        running.end()
    assert any("is served by ctranslate2, float32" in line for line in running.said)


@pytest.mark.slow
def test_a_new_version_takes_over_without_a_failed_request(out, export_dir, write_checkpoint):
    shutil.copytree(export_dir, out / "export")
    (first,) = (path for path in (out / "export").iterdir() if path.name.isdecimal())
    running = Server(f"--saved_model={out / 'export'}")
    url, faults, versions, stop = f"{running.address}/translate", [], set(), threading.Event()

    def ask():
        while not stop.is_set():
            answer = requests.post(url, json={"text": LINES}, timeout=60)
            versions.add(answer.json().get("version"))
            if answer.status_code != 200:
                faults.append(answer.text)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        damaged = out / "export" / str(int(first.name) + 1)
        damaged.mkdir()
        (damaged / "saved_model.pb").write_bytes(b"no model")
        running.wait_for(lambda: any("is refused" in line for line in running.said))
        write_checkpoint(out, 9)
        assert exporter.main(["t2t-exporter", f"--output_dir={out}"]) == 0
        running.wait_for(lambda: len(versions) > 1)
        running.wait_for(lambda: any("no longer served" in line for line in running.said))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        running.end()
    newest = max(int(path.name) for path in (out / "export").iterdir() if path.name.isdecimal())
    assert not faults
    assert versions == {int(first.name), newest}


@pytest.mark.slow
def test_requests_are_answered_before_the_server_ends(trained):
    running = Server(f"--output_dir={trained / 'out'}")
    answers = []
    request = {"text": [f"{line} {n}" for n in range(60) for line in LINES]}
    thread = threading.Thread(
        target=lambda: answers.append(
            requests.post(f"{running.address}/translate", json=request, timeout=120)
        )
    )
    thread.start()
    running.wait_for(lambda: "t2t_queue_lines 0.0" not in requests.get(f"{running.address}/metrics").text)
    status = running.end(signal.SIGINT)
    thread.join()
    assert len(answers[0].json()["translations"]) == len(request["text"])
    assert status == 0


@pytest.mark.slow
def test_a_log_whose_disk_is_full(export_dir):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "t2t_revival.cli.server", f"--saved_model={export_dir}"]
    with open("/dev/full", "w") as full:
        process = subprocess.Popen([*command, f"--port={port}", "--access_log"], stderr=full, stdout=full)
    try:
        ends = time.monotonic() + START_SECS
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
def test_a_damaged_model(tmp_path):
    """In a process of its own: in pytest, uvicorn closes the stream that absl had logged to."""
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "saved_model.pb").write_bytes(b"no model")
    flags = ["--port=0", f"--saved_model={tmp_path}", "--servable_name=m"]
    command = [sys.executable, "-m", "t2t_revival.cli.server", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=START_SECS)
    listening, starting, refused_version, error = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert listening.startswith("listening at ")
    assert starting == "starting TensorFlow"
    assert refused_version.startswith(f"m: version 3 is refused: {tmp_path}")
    assert error.startswith("server: error: m: version 3: cannot be loaded")


def test_a_port_that_is_taken(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(
            capsys, [f"--port={port}", f"--saved_model={tmp_path}"], f"--port={port}: Address already in use"
        )
    refused(capsys, ["--host=192.0.2.1", f"--saved_model={tmp_path}"], "--host=192.0.2.1 --port=8501: ")


def test_a_package_that_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == "uvicorn" else name)
    refused(capsys, ["--saved_model=x"], "the package uvicorn is not installed", "pip install")
