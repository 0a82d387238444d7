"""A client that reads its answer slowly holds back its own lines, and nobody else's."""

import json
import socket
import time

import pytest
import requests

from tests.server.page_server import Running

LINES, HEAD = 20_000, "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n"


def translated(server):
    return sum(map(len, server.capitals.batches))


def settled(server):
    """Waits until lines are translated, and then no more for three seconds; returns their number."""
    ends = time.monotonic() + 60
    while not translated(server):
        assert time.monotonic() < ends
        time.sleep(0.01)
    seen = [-1]
    while len(set(seen[-4:])) > 1 or len(seen) < 4:
        seen.append(translated(server))
        time.sleep(1)
    return seen[-1]


def texts(answer, lines):
    """Reads the best outputs of a streamed answer; each is a line between those that give its length."""
    found = []
    for line in answer:
        found += [json.loads(line)["text"]] if line.startswith(b"{") else []
        if len(found) == lines:
            return found
    return found


@pytest.mark.slow
@pytest.mark.nightly
def test_lines_are_translated_as_they_are_read():
    server = Running()
    address = server.url.removeprefix("http://").rstrip("/").split(":")
    request = {"text": [f"line {n}" for n in range(LINES)], "model": "capitals", "stream": True}
    body = json.dumps(request | {"options": {"n": 16, "beam_size": 16}}).encode()
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    try:
        reader.connect((address[0], int(address[1])))
        reader.sendall(HEAD.format(len(body)).encode() + body)
        seen = settled(server)
        assert 0 < seen < LINES / 2
        other = requests.post(
            f"{server.url}translate", json={"text": "a dog", "model": "capitals"}, timeout=10
        )
        assert other.json()["translations"][0]["text"] == "A DOG"
        assert "t2t_queue_lines 0.0" in requests.get(f"{server.url}metrics", timeout=10).text
        with reader.makefile("rb") as answer:
            assert texts(answer, LINES) == [f"LINE {n}" for n in range(LINES)]
    finally:
        reader.close()
        server.end()
