"""HTTP/1.1 as uvicorn speaks it, for clients that offer another protocol."""

from __future__ import annotations

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

OFFER = (b"upgrade", b"http2-settings")  # headers, and tokens of Connection


class Protocol(HttpToolsProtocol):
    """Ignores offers to upgrade a connection, as RFC 9110, section 7.8, allows.

    Java's HttpClient and curl --http2 offer h2c with each request. httptools takes what follows the headers
    of such a request for the other protocol, so they are read once more without the offer.
    """

    def data_received(self, data: bytes) -> None:
        """Reads a part of the requests of a connection."""
        self._unset_keepalive_if_required()
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                if not self._is_offer():
                    return
                data = self._without_offer() + data[offer.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError:
                self.send_400_response("Invalid HTTP request received.")
                return

    def on_headers_complete(self) -> None:
        """Begins to answer a request, unless it is read once more."""
        if not self._is_offer():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Ends the body of a request, unless it is read once more."""
        if not self._is_offer():
            super().on_message_complete()

    def _is_offer(self) -> bool:
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _without_offer(self) -> bytes:
        """Returns the head of the request without the offer."""
        version, method = self.parser.get_http_version().encode(), self.parser.get_method()
        lines = [b"%b %b HTTP/%b" % (method, self.url, version)]
        for name, value in self.headers:
            if name == b"connection":
                tokens = (token.strip() for token in value.split(b","))
                value = b", ".join(token for token in tokens if token.lower() not in OFFER)
            if name not in OFFER and (value or name != b"connection"):
                lines.append(b"%b: %b" % (name, value))
        return b"\r\n".join([*lines, b"", b""])
