"""Bodies that are too slow, and clients that go before they have sent theirs."""

import asyncio
import json

from t2t_revival.addons.server import protection
from t2t_revival.addons.server.protection import Protection


async def echo(scope, receive, send):
    """Answers with the body, and then waits for the client to go."""
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})
    assert (await receive())["type"] == "http.disconnect"


def call(messages, **settings):
    """Sends messages to the middleware, the last of them after half a second; returns what it sent."""
    sent, scope = (
        [],
        {
            "type": "http",
            "method": "POST",
            "path": "/translate",
            "headers": [(b"content-type", b"text/plain")],
        },
    )
    waiting = iter(messages)

    async def receive():
        message = next(waiting, None)
        if message is None:
            await asyncio.sleep(60)
        return message

    async def send(message):
        sent.append(message)

    asyncio.run(Protection(echo, **{"max_body": 100, **settings})(scope, receive, send))
    return sent


def part(content, more=False):
    return {"type": "http.request", "body": content, "more_body": more}


GONE = {"type": "http.disconnect"}


def test_a_body_that_does_not_come(monkeypatch):
    monkeypatch.setattr(protection, "BODY_SECS", 0.05)
    start, answer = call([part(b"half", True)])
    assert start["status"] == 408
    assert "did not come within 0.05 seconds" in json.loads(answer["body"])["error"]


def test_a_client_that_goes_gets_no_answer():
    assert call([part(b"half", True), GONE]) == []
