"""Hosts on this machine that answer, refuse or keep silent."""

import socket
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from t2t_revival.data.library_sources import silent_hosts


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def answering():
    """Host that answers 501 to all requests."""
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def silent():
    """Host that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def refusing():
    """Host without a server."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("urls", [[], ["gs://bucket/a"], ["no-scheme"]])
def test_no_host_that_can_be_asked_is_no_silent_host(urls):
    assert silent_hosts(urls) == []


def test_hosts_are_asked_through_the_proxy(answering, refusing, monkeypatch):
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", answering)
    assert silent_hosts(["http://mirror.invalid/a"]) == []
    monkeypatch.setenv("http_proxy", refusing)
    assert silent_hosts(["http://mirror.invalid/a"]) == ["http://mirror.invalid"]


def test_any_answer_counts_and_is_not_waited_for_in_vain(answering, refusing, silent):
    begin = time.monotonic()
    for hosts in ([answering], [refusing, answering], [silent, answering]):
        assert silent_hosts([f"{host}/a/b.tgz" for host in hosts], seconds=30) == []
    assert silent_hosts([f"{refusing}/a", f"{refusing}/b"], seconds=30) == [refusing], "named once"
    assert silent_hosts([silent, refusing], seconds=0.2) == sorted([silent, refusing])
    assert time.monotonic() - begin < 10
