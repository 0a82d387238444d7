"""ASGI middleware: bounds on bodies, API keys, security headers, errors as JSON."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

JSON = (b"content-type", b"application/json")
OPEN_PATHS = ("/healthz", "/readyz")  # need no key: probes have none
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
)


class Protection:
    """Middleware that rejects requests without a key or with a large body, and adds security headers.

    Bodies count as JSON, as TensorFlow Serving takes them.

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
        scope["headers"] = [
            *(headers | dict([JSON])).items()
        ]  # whatever the client calls it, as curl -d does

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        if not self._may_enter(scope["path"], headers):
            challenge = {"WWW-Authenticate": "Bearer"}
            await send_error(
                send_with_headers, 401, "no valid API key: send Authorization: Bearer KEY", challenge
            )
        elif _length(headers) > self._max_body:
            await self._refuse_body(send_with_headers)
        else:
            await self._count_body(scope, receive, send_with_headers)

    def _may_enter(self, path: str, headers: Mapping[bytes, bytes]) -> bool:
        if not self._keys or path in OPEN_PATHS:
            return True
        given = headers.get(b"x-api-key", b"")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            given = token.strip()
        return sum(hmac.compare_digest(given, key) for key in self._keys) > 0

    async def _count_body(self, scope: Message, receive: Receive, send: Send) -> None:
        """Calls the application; where the body turns out to be too large, its answer is replaced."""
        received, answered = 0, False

        async def counted_receive() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_body:
                raise _BodyTooLargeError
            return message

        async def checked_send(message: Message) -> None:
            nonlocal answered
            if received <= self._max_body:
                answered = True
                await send(message)

        with suppress(_BodyTooLargeError):
            await self._app(scope, counted_receive, checked_send)
        if not answered:
            await self._refuse_body(send)

    async def _refuse_body(self, send: Send) -> None:
        message = f"the body is larger than {self._max_body:,} bytes: send fewer lines"
        await send_error(send, 413, message, {"Connection": "close"})


class _BodyTooLargeError(Exception):
    """The body is larger than allowed."""


async def send_error(send: Send, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
    """Sends an error as TensorFlow Serving does: a JSON object with the key "error"."""
    body = json.dumps({"error": message}).encode()
    sent = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    encoded = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _length(headers: Mapping[bytes, bytes]) -> int:
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0
