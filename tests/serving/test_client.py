"""The client against a server on real sockets: its outputs, and all ways in which it may fail."""

import pickle
import socket
import threading
import time

import numpy as np
import pytest

from t2t_revival import T2TError, Translation
from t2t_revival.serving import client
from t2t_revival.serving.signatures import DEFAULT, NO_OUTPUT, WITH_OPTIONS
from tests.support.exported import asking
from tests.support.model_server import HOST, Cable, Canned, ModelServer, Refusal, Side, echo, texts


@pytest.fixture(scope="module")
def model_server():
    server = ModelServer(echo)
    yield server
    server.close()


@pytest.fixture(params=["grpc", "rest"])
def server(request, model_server, monkeypatch):
    """A server that returns lines in capitals; retries come quickly."""
    monkeypatch.setattr(client, "BACKOFF", 0.2)
    monkeypatch.setattr(client, "RECONNECT_MS", 50)
    model_server.predict = echo
    return Side(model_server, request.param)


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


def test_names_and_numbers_that_other_clients_rely_on():
    assert (DEFAULT, WITH_OPTIONS) == ("serving_default", "translate_with_options")
    assert NO_OUTPUT == -1e9


def test_lines_go_in_batches_and_come_back_in_order(server):
    server.model_server.predict, calls = failing(0, busy)
    lines = [f"line {number}" for number in range(7)]
    assert texts(asking(server.model(), batch_size=3).nbest(lines)) == [[line.upper()] for line in lines]
    assert [len(inputs["inputs"]) for _, _, inputs in calls] == [3, 3, 1]
    assert {signature for _, signature, _ in calls} == {"serving_default"}
    assert asking(server.model()).nbest([]) == []


def test_options_are_given_for_each_line(server):
    server.model_server.predict, calls = failing(0, busy)
    found = asking(server.model(), "beam_size=3,alpha=1.0,extra_length=7,return_beams=True").nbest(["a", "b"])
    assert found[1] == [Translation("B", 0.0), Translation("B!", -1.0), Translation("B!!", -2.0)]
    ((_, signature, inputs),) = calls
    assert signature == "translate_with_options"
    given = {name: [*values] for name, values in inputs.items() if name != "inputs"}
    assert given == {"beam_size": [3, 3], "alpha": [1.0, 1.0], "extra_length": [7, 7], "n": [3, 3]}


def test_padding_is_dropped(server):
    def predict(*_):
        outputs = np.array([[b"a", b""]], object)
        return {"outputs": outputs, "scores": np.float32([[-1, NO_OUTPUT]]), "truncated": np.zeros(1, bool)}

    server.model_server.predict = predict
    found = asking(server.model()).nbest(["x", ""])
    assert found == [[Translation("a", -1.0)], [Translation("", 0.0)]]


def test_outputs_have_each_text_once_and_tell_that_they_were_cut(server):
    def predict(name, signature, inputs):
        asked.append(max(inputs["n"]))
        scores, cut = np.float32([[-1, -2, -3, -4]]), np.array([[False, False, True, False]])
        outputs = np.array([[b"a", b"a", b"b", b"c"]], object)
        return {"outputs": outputs, "scores": scores, "truncated": np.zeros(1, bool), "cut": cut}

    asked, server.model_server.predict = [], predict
    translator = asking(server.model(), "beam_size=8,return_beams=True")
    assert translator.nbest(["x"], n=2) == [[Translation("a", -1.0), Translation("b", -3.0, cut=True)]]
    assert len(translator.nbest(["x"])[0]) == 3
    assert asked == [4, 8]  # to fill the list, and no more than the beam has


def test_a_model_at_a_server_can_be_pickled(server):
    translator = asking(server.model(), "beam_size=2")
    assert texts(pickle.loads(pickle.dumps(translator)).nbest(["a"])) == texts(translator.nbest(["a"]))


def test_a_busy_server_is_asked_again(server):
    server.model_server.predict, calls = failing(2, busy)
    lines = ["x" * 10_000] * 500  # more than gRPC keeps for a retry, and takes as an answer, unless told
    assert len(asking(server.model(retries=2), batch_size=500).nbest(lines)) == 500
    assert len(calls) == 3


def test_a_server_that_stays_busy_says_so(server):
    server.model_server.predict, calls = failing(9, busy)
    of_rest = (
        "the server is running: try again later, or give more --retries"  # gRPC does not tell who says it
    )
    hint = of_rest if server.protocol == "rest" else "is TensorFlow Serving running"
    with pytest.raises(T2TError, match=f"not available: the queue is full; {hint}"):
        asking(server.model(retries=1)).nbest(["a"])
    assert len(calls) == 2


def test_a_server_that_starts_late_is_reached(server):
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    timer = threading.Timer(0.2, lambda: Cable(server.port, port))
    timer.start()
    assert texts(asking(server.at(port, retries=4)).nbest(["a"])) == [["A"]]
    timer.join()


def test_no_server(server):
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(T2TError, match=rf"{HOST}:{port}: not available: .*[Cc]onnection refused; is Tensor"):
        asking(server.at(port)).nbest(["a"])


def test_a_host_that_does_not_exist(server):
    scheme = "http://" if server.protocol == "rest" else ""
    with pytest.raises(T2TError, match=r"nowhere\.invalid:80: no"):
        asking(client.connect(f"{scheme}nowhere.invalid:80", "echo", 5, 0)).nbest(["a"])


def test_a_host_that_drops_packets_is_given_up_in_time(server):
    with socket.create_server((HOST, 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((HOST, port)):  # fills the queue
            began = time.monotonic()
            with pytest.raises(T2TError, match=r"no answer in 0\.5 s"):
                asking(server.at(port, timeout_secs=0.5, retries=4)).nbest(["a"])
            assert time.monotonic() - began < 2


def test_a_slow_answer(server):
    done = threading.Event()
    server.model_server.predict, calls = failing(9, lambda: done.wait(10))
    with pytest.raises(T2TError, match=r"no answer in 2 s; .*--timeout_secs"):
        asking(server.model(timeout_secs=2.0, retries=4)).nbest(["a"])
    done.set()
    assert len(calls) == 1
    server.model_server.predict = echo
    assert texts(asking(server.model()).nbest(["a"])) == [["A"]]


def test_a_server_that_dies_in_mid_call_and_comes_back(server):
    cable = Cable(server.port)

    def restart():
        cable.cut()
        Cable(server.port, cable.port)

    server.model_server.predict, calls = failing(1, restart)
    assert texts(asking(server.at(cable.port, retries=4)).nbest(["a"])) == [["A"]]
    assert len(calls) == 2


@pytest.mark.parametrize("most", [10, 60, 200])
def test_a_server_that_dies_in_mid_answer(server, most):
    cable = Cable(server.port, most=most)
    with pytest.raises(T2TError, match=f"{HOST}:{cable.port}: not a"):
        asking(server.at(cable.port)).nbest(["a" * 1000])


def test_an_unknown_servable(server):
    with pytest.raises(T2TError, match=r"Servable not found .*Latest\(other\); .*--servable_name=other"):
        asking(server.model(name="other")).nbest(["a"])


def test_the_port_of_the_other_protocol(server):
    ports = {server.model_server.grpc_port, server.model_server.rest_port}
    (other,) = ports - {server.port}
    with pytest.raises(T2TError, match=r"not available: .*host:port is for gRPC, http://host:port for REST"):
        asking(server.at(other)).nbest(["a"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outputs": None}, "the response to 2 lines has scores, truncated: not a model that t2t-exporter"),
        ({"scores": None}, "to 2 lines has outputs, truncated: not a model"),
        ({"outputs": np.float32([[1], [2]])}, "not a model that t2t-exporter wrote"),
        ({"outputs": np.array([[b"a"]], object)}, "not a model that t2t-exporter wrote"),
        ({"scores": np.float32([[1, 1], [2, 2]])}, "to 2 lines"),
        ({"cut": np.zeros((2, 2), bool)}, "to 2 lines"),
        ({"cut": np.zeros(2, bool)}, "to 2 lines"),
        ({"scores": np.float32([[0], [np.nan]])}, "weights contain NaN"),
        ({"scores": np.float32([[0], [NO_OUTPUT]])}, "weights contain NaN"),
    ],
)
def test_a_response_of_another_shape(server, change, message):
    def predict(*request):
        answer = {**echo(*request), **change}
        return {name: array for name, array in answer.items() if array is not None}

    server.model_server.predict = predict
    with pytest.raises(T2TError, match=message):
        asking(server.model()).nbest(["a", "b"])


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
        (b'HTTP/1.1 429 Too Many\r\n\r\n{"error": "queue"}', "the request is too large"),
        (b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\n\r\n", "not available: Service Un"),
        (b"HTTP/1.1 504 Gateway Timeout\r\n\r\n", "no answer in 10 s"),
        (b"", "not available: RemoteDisconnected: "),
    ],
)
def test_responses_of_other_http_servers(content, message):
    canned = Canned(content)
    with pytest.raises(T2TError, match=f"http://{HOST}:{canned.port}: {message}"):
        asking(client.connect(f"http://{HOST}:{canned.port}/", "echo", 10, 1)).nbest(["a"])
    canned.close()


def test_a_line_that_cannot_be_utf8(server):
    with pytest.raises(T2TError, match="line 2: not valid Unicode"):
        asking(server.model()).nbest(["a", "b\udcff"])
