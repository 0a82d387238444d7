"""The client against a server of real sockets: what it answers, and every way in which it may fail."""

import re
import shutil
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import requests
from urllib3 import HTTPResponse

from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.serving import client, module
from t2t_revival.serving.export import SIGNATURES, export
from t2t_revival.serving.folder_model import FolderModel
from tests.support.model_server import HOST, Cable, Canned, ModelServer, Refusal, Servable, Side, echo

LINES = ["the dog sees 3 houses .", "", "cat", "Häuser 🦓"]
BAD = [
    "",
    " ",
    " \t \u3000",
    "x" * 10_000,
    "a\0b\0",
    "\x01\x1b[31m\x7f\x85",
    "a\nb\r\nc\u2028d",
    "👩‍👧🇩🇪",
    "שלום \u202e עולם",
    "\ufeff\ufffe\U0010ffff",
]
OPTIONS = DecodeHParams(beam_size=3, extra_length=4, return_beams=True)


@pytest.fixture(scope="module")
def model_server():
    server = ModelServer(echo)
    yield server
    server.close()


@pytest.fixture(params=["grpc", "rest"])
def server(request, model_server, monkeypatch):
    """A server that answers lines in capitals; pauses between tries are short."""
    monkeypatch.setattr(client, "BACKOFF", 0.2)
    monkeypatch.setattr(client, "RECONNECT_MS", 50)
    model_server.predict = echo
    return Side(model_server, request.param)


def texts(found):
    return [[output.text for output in outputs] for outputs in found]


def failing(times, fault):
    """A `predict` that calls `fault` at first, and the list of its calls."""
    calls = []

    def predict(*request):
        calls.append(request)
        if len(calls) <= times:
            fault()
        return echo(*request)

    return predict, calls


def busy():
    raise Refusal("UNAVAILABLE", "the queue is full")


def test_names_and_numbers_that_the_graph_has_too():
    assert (client.DEFAULT, client.WITH_OPTIONS) == SIGNATURES
    assert client.NO_OUTPUT == module.NO_OUTPUT


def test_lines_go_in_batches_and_come_back_in_order(server):
    server.model_server.predict, calls = failing(0, busy)
    lines = [f"line {number}" for number in range(7)]
    assert texts(client.query(server.model(), lines, batch_size=3)) == [[line.upper()] for line in lines]
    assert [len(inputs["inputs"]) for _, _, inputs in calls] == [3, 3, 1]
    assert {signature for _, signature, _ in calls} == {"serving_default"}
    assert client.query(server.model(), []) == []


def test_options_are_given_for_each_line(server):
    server.model_server.predict, calls = failing(0, busy)
    options = DecodeHParams(beam_size=3, alpha=1, extra_length=7, return_beams=True)
    found = client.query(server.model(), ["a", "b"], options)
    assert found[1] == [client.Output("B", 0.0), client.Output("B", -1.0), client.Output("B", -2.0)]
    ((_, signature, inputs),) = calls
    assert signature == "translate_with_options"
    given = {name: [*values] for name, values in inputs.items() if name != "inputs"}
    assert given == {"beam_size": [3, 3], "alpha": [1.0, 1.0], "extra_length": [7, 7], "n": [3, 3]}


def test_what_stands_for_no_output_is_left_out(server):
    def predict(*_):
        outputs = np.array([[b"a", b""], [b"", b""]], object)
        return {"outputs": outputs, "scores": np.float32([[-1, client.NO_OUTPUT], [0, client.NO_OUTPUT]])}

    server.model_server.predict = predict
    found = client.query(server.model(), ["x", ""])
    assert found == [[client.Output("a", -1.0)], [client.Output("", 0.0)]]


def test_a_busy_server_is_asked_again(server):
    server.model_server.predict, calls = failing(2, busy)
    lines = ["x" * 10_000] * 500  # more than gRPC keeps for a retry, and takes as an answer, unless told
    assert len(client.query(server.model(retries=2), lines, batch_size=500)) == 500
    assert len(calls) == 3


def test_a_server_that_stays_busy_says_so(server):
    server.model_server.predict, calls = failing(9, busy)
    with pytest.raises(T2TError, match="not available: the queue is full; is TensorFlow Serving running"):
        client.query(server.model(retries=1), ["a"])
    assert len(calls) == 2


def test_a_server_that_starts_late_is_reached(server):
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    timer = threading.Timer(0.2, lambda: Cable(server.port, port))
    timer.start()
    assert texts(client.query(server.at(port, retries=2), ["a"])) == [["A"]]
    timer.join()


def test_nobody_there(server):
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(T2TError, match=rf"{HOST}:{port}: not available: .*[Cc]onnection refused; is Tensor"):
        client.query(server.at(port), ["a"])


def test_a_host_that_does_not_exist(server):
    scheme = "http://" if server.protocol == "rest" else ""
    with pytest.raises(T2TError, match=r"nowhere\.invalid:80: no"):
        client.query(client.connect(f"{scheme}nowhere.invalid:80", "echo", 5, 0), ["a"])


def test_a_host_that_drops_packets_is_given_up_in_time(server):
    with socket.create_server((HOST, 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((HOST, port)):  # fills the queue
            began = time.monotonic()
            with pytest.raises(T2TError, match=r"no answer in 0\.5 s"):
                client.query(server.at(port, timeout_secs=0.5, retries=4), ["a"])
            assert time.monotonic() - began < 2


def test_a_slow_answer(server):
    done = threading.Event()
    server.model_server.predict, calls = failing(9, lambda: done.wait(10))
    with pytest.raises(T2TError, match=r"no answer in 0\.5 s; .*--timeout_secs"):
        client.query(server.model(timeout_secs=0.5, retries=4), ["a"])
    done.set()
    assert len(calls) == 1
    server.model_server.predict = echo
    assert texts(client.query(server.model(), ["a"])) == [["A"]]


def test_a_server_that_dies_in_mid_call(server):
    cable = Cable(server.port)
    server.model_server.predict, calls = failing(1, cable.cut)
    model = server.at(cable.port)
    with pytest.raises(T2TError, match=r"not available: .*; is TensorFlow Serving running there"):
        client.query(model, ["a"])
    assert len(calls) == 1


def test_a_server_that_dies_in_mid_call_and_comes_back(server):
    cable = Cable(server.port)

    def restart():
        cable.cut()
        Cable(server.port, cable.port)

    server.model_server.predict, calls = failing(1, restart)
    assert texts(client.query(server.at(cable.port, retries=4), ["a"])) == [["A"]]
    assert len(calls) == 2


@pytest.mark.parametrize("most", [10, 60, 200])
def test_a_server_that_dies_in_mid_answer(server, most):
    cable = Cable(server.port, most=most)
    with pytest.raises(T2TError, match=f"{HOST}:{cable.port}: not a"):
        client.query(server.at(cable.port), ["a" * 1000])


def test_an_unknown_servable(server):
    with pytest.raises(T2TError, match=r"Servable not found .*Latest\(other\); .*--servable_name=other"):
        client.query(server.model(name="other"), ["a"])


def test_the_port_of_the_other_protocol(server):
    ports = {server.model_server.grpc_port, server.model_server.rest_port}
    (other,) = ports - {server.port}
    with pytest.raises(T2TError, match=r"not available: .*host:port is for gRPC, http://host:port for REST"):
        client.query(server.at(other), ["a"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outputs": None}, "the response has scores: not a model that t2t-exporter wrote"),
        ({"scores": None}, "the response has outputs: not a model"),
        ({"outputs": np.float32([[1], [2]])}, "not a model that t2t-exporter wrote"),
        ({"outputs": np.array([[b"a"]], object)}, "1 outputs and 2 scores for 2 lines"),
        ({"scores": np.float32([[1, 1], [2, 2]])}, "for 2 lines"),
        ({"scores": np.float32([[0], [np.nan]])}, "weights contain NaN"),
        ({"scores": np.float32([[0], [client.NO_OUTPUT]])}, "weights contain NaN"),
    ],
)
def test_an_answer_of_another_shape(server, change, message):
    def predict(*request):
        answer = {**echo(*request), **change}
        return {name: array for name, array in answer.items() if array is not None}

    server.model_server.predict = predict
    with pytest.raises(T2TError, match=message):
        client.query(server.model(), ["a", "b"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not available: BadStatusLine: SSH-2.0"),
        (b"HTTP/1.1 200 OK\r\n\r\n<html>hello", "not a response of TensorFlow Serving: '<html>hello'"),
        (b'HTTP/1.1 200 OK\r\n\r\n{"outputs": [1]}', "not a response of TensorFlow Serving"),
        (b"HTTP/1.1 200 OK\r\n\r\n[]", "not a response of TensorFlow Serving"),
        (b"HTTP/1.1 301 Moved Permanently\r\nLocation: /\r\n\r\n", "HTTP 301: Moved Permanently"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n<html>", "Not Found; .*--servable_name=echo"),
        (b'HTTP/1.1 404 Not Found\r\n\r\n{"error": "no m"}', "no m; .*--servable_name=echo"),
        (b"HTTP/1.1 500 Internal Server Error\r\n\r\n", "HTTP 500: Internal Server Error"),
        (b'HTTP/1.1 500 Internal Server Error\r\n\r\n{"error": "full"}', "HTTP 500: full"),
        (
            b'HTTP/1.1 429 Too Many\r\n\r\n{"error": "queue"}',
            "too large a request or too many: queue; give a smaller",
        ),
        (b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\n\r\n", "not available: Service Un"),
        (b"HTTP/1.1 504 Gateway Timeout\r\n\r\n", "no answer in 10 s"),
        (b"", "not available: RemoteDisconnected: "),
    ],
)
def test_what_other_http_servers_say(content, message):
    canned = Canned(content)
    with pytest.raises(T2TError, match=f"http://{HOST}:{canned.port}: {message}"):
        client.query(client.connect(f"http://{HOST}:{canned.port}/", "echo", 10, 1), ["a"])
    canned.close()


def test_a_line_that_cannot_be_utf8(server):
    with pytest.raises(T2TError, match="not UTF-8 text"):
        client.query(server.model(), ["a", "b\udcff"])


@pytest.fixture(scope="module")
def translator(make_translator):
    return make_translator(DecodeHParams(beam_size=2, extra_length=3), max_length=30)


@pytest.fixture(scope="module")
def folder(translator, tmp_path_factory):
    """An export_dir."""
    folder = tmp_path_factory.mktemp("export")
    export(translator, folder, "tiny")
    return folder


@pytest.fixture(scope="module")
def model_server_of_model(folder):
    server = ModelServer(Servable("tiny", max(folder.glob("[0-9]*"))))
    yield server
    server.close()


@pytest.fixture(scope="module")
def decoders(translator):
    """Translators by options; None: as exported."""
    other = Translator(translator.model, translator.vocabulary, OPTIONS, translator.max_length)
    return {None: translator, OPTIONS: other}


@pytest.fixture(scope="module", params=["grpc", "rest", "folder"])
def model(request, model_server_of_model, folder):
    if request.param == "folder":
        return FolderModel(folder)
    return Side(model_server_of_model, request.param).model(name="tiny", timeout_secs=60)


@pytest.mark.slow
@pytest.mark.parametrize("options", [None, OPTIONS])
def test_answers_are_those_of_the_translator(decoders, model, options):
    found, expected = client.query(model, LINES, options, batch_size=3), decoders[options].nbest(LINES)
    assert texts(found) == texts(expected)
    for outputs, wanted in zip(found, expected, strict=True):
        scores = [output.score for output in outputs]
        np.testing.assert_allclose(scores, [output.score for output in wanted], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:line 4")
def test_any_text_is_answered(translator, model):
    expected = texts(translator.nbest(BAD))
    assert texts(client.query(model, BAD)) == expected
    assert [texts(client.query(model, [line]))[0] for line in BAD] == expected
    many = texts(client.query(model, ["", "cat"] * 500, batch_size=1000))
    assert many == texts(translator.nbest(["", "cat"])) * 500


@pytest.mark.slow
def test_no_lines(model):
    answer = model.predict("serving_default", {"inputs": []})
    assert answer == {"outputs": [], "scores": []}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["grpc", "folder"], indirect=True)  # JSON has no such strings
def test_bytes_that_are_no_text(translator, model):
    answer = model.predict("serving_default", {"inputs": [b"cat \xff\xfe", b"\xc3"]})
    expected = translator.translate(["cat \ufffd\ufffd", "\ufffd"])
    assert [text.decode() for (text,) in answer["outputs"]] == expected


@pytest.mark.slow
def test_what_the_model_refuses(model):
    options = {"beam_size": [2], "alpha": [0.6], "extra_length": [5], "n": [3]}
    with pytest.raises(T2TError, match=r": n must be between 1 and beam_size: 3$"):
        model.predict("translate_with_options", {"inputs": ["a"], **options})
    options = {**options, "n": [1, 1, 1]}
    with pytest.raises(T2TError, match=r": n must be a scalar, or have one value for each line; .* is: 3$"):
        model.predict("translate_with_options", {"inputs": ["a", "b"], **options})
    assert len(client.query(model, ["a"])) == 1


@pytest.mark.slow
@pytest.mark.parametrize("rows", [["cat", ""], [{"inputs": "cat"}, {"inputs": ""}]])
def test_rows_over_rest(translator, model_server_of_model, rows):
    """What others send, such as curl."""
    url = f"http://{HOST}:{model_server_of_model.rest_port}/v1/models/tiny:predict"
    answers = requests.post(url, json={"instances": rows}, timeout=10).json()["predictions"]
    assert [answer["outputs"] for answer in answers] == [translator.translate(["cat"]), [""]]


@pytest.mark.slow
@pytest.mark.parametrize("body", ["rows", "columns", "scalars"])
def test_options_over_rest(decoders, model_server_of_model, body):
    """In both of its formats, and scalars, which a server without batching passes on."""
    options = {"beam_size": 3, "alpha": 0.6, "extra_length": 4, "n": 3}  # as OPTIONS
    columns = {"inputs": ["cat", "the dog"], **{name: [value] * 2 for name, value in options.items()}}
    bodies = {
        "rows": {"instances": [{"inputs": line, **options} for line in columns["inputs"]]},
        "columns": {"inputs": columns},
        "scalars": {"inputs": {**columns, **options}},
    }
    url = f"http://{HOST}:{model_server_of_model.rest_port}/v1/models/tiny:predict"
    request = {"signature_name": "translate_with_options", **bodies[body]}
    answer = requests.post(url, json=request, timeout=10).json()
    rows = [row["outputs"] for row in answer.get("predictions", ())] or answer["outputs"]["outputs"]
    assert rows == texts(decoders[OPTIONS].nbest(columns["inputs"]))


def guide_example():
    """The Python that docs/guides/serving.md shows for a SavedModel."""
    text = (Path(__file__).parents[2] / "docs" / "guides" / "serving.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "saved_model" in block]
    return code


@pytest.mark.slow
def test_the_python_of_the_guide(decoders, folder, capsys):
    version = max(folder.glob("[0-9]*"))
    found = {}
    exec(guide_example().replace("export/VERSION", str(version)), found)
    lines = ["The old dog sleeps.", "A cat."]
    for answer, n in ((found["best"], 1), (found["more"], 2)):
        assert {name: (tensor.dtype.name, tuple(tensor.shape)) for name, tensor in answer.items()} == {
            "outputs": ("string", (2, n)),
            "scores": ("float32", (2, n)),
        }
    best = [[text.decode() for text in row] for row in found["best"]["outputs"].numpy()]
    assert best == texts(decoders[None].nbest(lines))
    assert capsys.readouterr().out.startswith(best[0][0])


@pytest.mark.slow
def test_a_damaged_model(folder, tmp_path):
    version = shutil.copytree(max(folder.glob("[0-9]*")), tmp_path / "1")
    shutil.rmtree(version / "variables")
    with pytest.raises(T2TError, match=f"{version}: cannot be read; export it again: "):
        FolderModel(tmp_path)


def test_rest_waits_as_grpc_does():
    retry, waits = client._Retry(4, allowed_methods=None, status_forcelist=[503]), []
    for _ in range(4):
        retry = retry.increment("POST", "/", response=HTTPResponse(status=503))
        waits.append(retry.get_backoff_time())
    assert waits == [0.5, 1, 2, 4]
