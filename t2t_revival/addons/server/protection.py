"""ASGI middleware: bounds on bodies, API keys, security headers, errors as JSON."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any

from t2t_revival.addons.server.page import FILES, content_policy

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

JSON = {b"content-type": b"application/json"}  # whatever a client calls its body, as curl -d does
PLAIN = b"identity"  # Content-Encoding of a body that is not packed
CLOSE = {"Connection": "close"}
BODY_SECS = 15  # for the next part of a body
OPEN_PATHS = ("/healthz", "/readyz", *FILES)  # need no key: probes and a page that asks for one have none
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", content_policy().encode()),
)


class Protection:
    """Middleware that rejects requests without a key or with a large or slow body, and adds security headers.

    Bodies are read before the application is called. They count as JSON, as TensorFlow Serving takes them. A
    HEAD is answered as a GET, whose body uvicorn leaves out.

    Args:
        app: the application.
        max_body: bytes of a request's body.
        api_keys: keys, one of which a request has as `Authorization: Bearer KEY` or `X-API-Key: KEY`. Without
            any, requests need none.
    """

    def __init__(self, app: App, max_body: int, api_keys: Collection[str] = ()) -> None:
        self._app, self._max_body = app, max_body
        self._keys = [key.encode() for key in api_keys]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        try:
            self._check(scope["path"], headers)
            body = await self._read(receive)
        except _RefusedError as error:
            await send_error(send_with_headers, error.status, str(error), error.headers)
            return
        if body is not None:
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            changed = {"headers": [*(headers | JSON).items()], "method": method}
            await self._app({**scope, **changed}, _after(body, receive), send_with_headers)

    def _check(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Raises _RefusedError if a request has no key, or a packed body."""
        if not self._may_enter(path, headers):
            challenge = {"WWW-Authenticate": "Bearer"}
            raise _RefusedError(401, "no valid API key: send Authorization: Bearer KEY", challenge)
        if (encoding := headers.get(b"content-encoding", PLAIN).lower()) not in (b"", PLAIN):
            fault = (
                f"Content-Encoding: {encoding.decode('ascii', 'replace')}: send the body as it is, in JSON"
            )
            raise _RefusedError(415, fault, CLOSE)

    def _may_enter(self, path: str, headers: Mapping[bytes, bytes]) -> bool:
        if not self._keys or path in OPEN_PATHS:
            return True
        given = headers.get(b"x-api-key", b"")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            given = token.strip()
        return sum(hmac.compare_digest(given, key) for key in self._keys) > 0

    async def _read(self, receive: Receive) -> bytes | None:
        """Reads a body, or `None` if the client has gone; raises _RefusedError if it is too large or slow."""
        body = bytearray()
        while True:
            try:
                message = await asyncio.wait_for(receive(), BODY_SECS)
            except asyncio.TimeoutError as error:
                late = f"the rest of the body did not come within {BODY_SECS} seconds"
                raise _RefusedError(408, late, CLOSE) from error
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._max_body:
                large = f"the body is larger than {self._max_body:,} bytes: send fewer lines"
                raise _RefusedError(413, large, CLOSE)
            if not message.get("more_body"):
                return bytes(body)


class _RefusedError(Exception):
    """A request that does not reach the application."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


def _after(body: bytes, receive: Receive) -> Receive:
    """Returns a function that gives a body that was read, and then what comes after it."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_rest() -> Message:
        return next(messages, None) or await receive()

    return receive_rest


async def send_error(send: Send, status: int, message: str, headers: Mapping[str, str]) -> None:
    """Sends an error as TensorFlow Serving does: a JSON object with the key "error"."""
    body = json.dumps({"error": message}).encode()
    sent = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    encoded = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
