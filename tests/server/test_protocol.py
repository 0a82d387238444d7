"""Clients that offer another protocol with their requests, as Java's HttpClient and curl --http2 do."""

import json
import socket
import threading
import time

import pytest
import uvicorn

from t2t_revival.addons.server.protocol import Protocol

OFFERS = {
    "h2c": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n",
    "websocket": b"connection: keep-alive, upgrade\r\nupgrade: websocket\r\nsec-websocket-key: YQ==\r\n",
    "TLS": b"UPGRADE: TLS/1.0\r\nCONNECTION: UPGRADE\r\n",
}


async def echo(scope, receive, send):
    """Answers with what it has understood of a request."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    names = [name.decode() for name, _ in scope["headers"]]
    answer = json.dumps([scope["method"], scope["path"], body.decode(), names]).encode()
    headers = [(b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


@pytest.fixture(scope="module")
def port():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(echo, http=Protocol, ws="none", log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join()


def ask(port, *packets, answers=1):
    """Sends packets, and returns the status and the content of each answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        for number, packet in enumerate(packets):
            if number:
                time.sleep(0.05)
            connection.sendall(packet)
        with connection.makefile("rb") as stream:
            return [answer(stream) for _ in range(answers)]


def answer(stream):
    status, length = int(stream.readline().split()[1]), 0
    while (line := stream.readline()) != b"\r\n":
        if line.lower().startswith(b"content-length:"):
            length = int(line.split()[1])
    content = stream.read(length)
    return status, json.loads(content) if content.startswith(b"[") else content


def request(offer, more=b"Content-Length: 5\r\n", method=b"POST", path=b"/a%20b"):
    return b"%b %b HTTP/1.1\r\nHost: here\r\n%b%b\r\n" % (method, path, OFFERS[offer], more)


def understood(body="12345", length="content-length", offer="h2c"):
    kept = {"h2c": [], "websocket": ["connection", "sec-websocket-key"], "TLS": []}[offer]
    return 200, ["POST", "/a b", body, ["host", *kept, length]]


@pytest.mark.parametrize("offer", OFFERS)
def test_a_body_in_the_same_packet_or_in_others(port, offer):
    head, expected = request(offer), [understood(offer=offer)]
    assert ask(port, head + b"12345") == expected
    assert ask(port, head, b"12345") == expected
    assert ask(port, head + b"12", b"345") == expected
    assert ask(port, head[:9], head[9:50], head[50:-1], head[-1:] + b"1", b"2345") == expected


def test_a_chunked_body(port):
    head = request("h2c", b"Transfer-Encoding: chunked\r\n")
    expected = [understood("12345", "transfer-encoding")]
    assert ask(port, head + b"2\r\n12\r\n3\r\n345\r\n0\r\n\r\n") == expected
    assert ask(port, head, b"2\r\n12\r\n", b"3\r\n345\r\n0\r\n\r\n") == expected


def test_a_client_that_waits_for_100_continue(port):
    head = request("h2c", b"Expect: 100-continue\r\nContent-Length: 5\r\n")
    (first, _), (status, content) = ask(port, head, b"12345", answers=2)
    assert (first, status, content[2]) == (100, 200, "12345")


def test_requests_that_follow_on_the_same_connection(port):
    one, two = request("h2c") + b"12345", request("websocket") + b"67890"
    plain = b"GET /plain HTTP/1.1\r\nHost: here\r\n\r\n"
    expected = [understood(), understood("67890", offer="websocket"), (200, ["GET", "/plain", "", ["host"]])]
    assert ask(port, one + two + plain, answers=3) == expected
    assert ask(port, one, two, plain, answers=3) == expected
    assert ask(port, one * 300 + plain, answers=301)[-1] == expected[-1]


def test_requests_without_a_body(port):
    asked = request("h2c", b"", b"GET")
    assert ask(port, asked) == [(200, ["GET", "/a b", "", ["host"]])]


@pytest.mark.parametrize("wrong", [b"no request\r\n\r\n", b"CONNECT here:80 HTTP/1.1\r\nHost: here\r\n\r\n"])
def test_what_is_wrong_is_refused_as_before(port, wrong):
    assert ask(port, wrong) == [(400, b"Invalid HTTP request received.")]
    assert ask(port, request("h2c") + b"12345", wrong, answers=2)[1][0] == 400
