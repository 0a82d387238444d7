"""Proxies of the environment: servers of this machine are asked without them, and others name them."""

import pytest

from t2t_revival import T2TError
from t2t_revival.serving.client import connect
from t2t_revival.serving.proxies import is_local, proxy_of
from tests.support.model_server import ModelServer, Side, echo

NOWHERE = "127.0.0.1:9"  # the port that discards
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in VARIABLES:
        for each in (name, name.upper()):
            monkeypatch.delenv(each, raising=False)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("a.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("example", False),
        ("", False),
    ],
)
def test_hosts_of_this_machine(host, local):
    assert is_local(host) is local


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("http://there:8501", {"http_proxy": "http://p:1"}, "http://p:1"),
        ("http://there:8501", {"HTTP_PROXY": "http://p:1", "https_proxy": "http://q:2"}, "http://p:1"),
        ("https://there:8501", {"http_proxy": "http://p:1", "https_proxy": "http://q:2"}, "http://q:2"),
        ("http://there:8501", {"all_proxy": "socks5://p:1"}, "socks5://p:1"),
        ("http://there:8501", {"http_proxy": "http://me:secret@p:1"}, "http://p:1"),
        ("http://there:8501", {"http_proxy": "http://p:1", "no_proxy": "there"}, ""),
        ("there:8500", {"http_proxy": "http://p:1"}, "http://p:1"),
        ("there:8500", {"http_proxy": "http://p:1", "grpc_proxy": "http://q:2"}, "http://q:2"),
        ("there:8500", {"https_proxy": "http://p:1", "no_proxy": "there"}, ""),
        ("http://localhost:8501", {"http_proxy": "http://p:1"}, ""),
        ("http://[::1]:8501", {"http_proxy": "http://p:1"}, ""),
        ("127.0.0.1:8500", {"http_proxy": "http://p:1"}, ""),
        ("there:8500", {}, ""),
    ],
)
def test_the_proxy_of_a_server(server, environment, proxy, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_of(server) == proxy


@pytest.mark.parametrize("proxy", [f"http://{NOWHERE}", f"socks5://{NOWHERE}"])
@pytest.mark.parametrize("address", ["http://there.example:8501", "there.example:8500"])
def test_a_proxy_that_is_asked_in_vain_is_named(address, proxy, monkeypatch):
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(T2TError) as found:
        connect(address, "m", timeout_secs=2, retries=0).predict("s", {"inputs": ["a"]})
    assert f"{address} (asked by the proxy {proxy}: set no_proxy to ask without it): " in str(found.value)


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_a_server_of_this_machine_is_asked_directly(protocol, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://{NOWHERE}")
    monkeypatch.setenv("ALL_PROXY", f"socks5://{NOWHERE}")
    server = ModelServer(echo)
    try:
        answer = Side(server, protocol).model().predict("serving_default", {"inputs": ["a"]})
    finally:
        server.close()
    assert answer["outputs"] in ([["A"]], [[b"A"]])
