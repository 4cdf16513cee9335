"""HTTP/1.1 for clients that offer another protocol, such as HTTP/2 in clear text (``Upgrade: h2c``).

A server may ignore such an offer (RFC 9110, section 7.8). The parser of uvicorn does not: it ends the request after its
head, so the body would be read as the next request. Here the head is parsed again without the offer.
"""

from __future__ import annotations

from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

INVALID = "Invalid HTTP request received."
"""Body of the response to bytes that are not a request, and the warning in the log."""

_OFFERS = (b"upgrade", b"http2-settings")


class IgnoresOffers(HttpToolsProtocol):
    """The requests of a connection, each answered in HTTP/1.1; nothing is read after an invalid request.

    An invalid request after a complete one does not replace its response: the client gets that response, and then the
    connection is closed.
    """

    _answering: RequestResponseCycle | None = None
    _is_broken = False

    def data_received(self, data: bytes) -> None:
        """Parse some bytes; a head with an offer is parsed again without it."""
        self._unset_keepalive_if_required()
        rest = memoryview(data)
        try:
            while rest and not self._is_broken and not self.transport.is_closing():
                rest = self._parse(rest)
        except httptools.HttpParserError:
            self.refuse()

    def refuse(self) -> None:
        """Respond with 400 and close, or close after the response to a complete request that is in progress."""
        if self.transport.is_closing():
            return
        self.logger.warning(INVALID)
        self._is_broken = True
        before = self._answering
        if before is None or before.response_complete or before.more_body:
            self.send_400_response(INVALID)
        else:
            before.keep_alive = False

    def on_headers_complete(self) -> None:
        """Start the response, unless the head is to be parsed again."""
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body is complete, unless the head is to be parsed again."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _parse(self, data: memoryview) -> memoryview:
        """Feed the parser; returns the bytes after a head with an offer; raises HttpParserError."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError("CONNECT asks for a tunnel") from None
            head = self._head_without_offer()
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does: it answers first
            self.parser.feed_data(head)
            return data[offer.args[0] :]
        return memoryview(b"")

    def _head_without_offer(self) -> bytes:
        """The head that was parsed last, without the headers that offer a protocol."""
        version = self.parser.get_http_version().encode("ascii")
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        for name, value in self.headers:
            kept = _without_offers(value) if name == b"connection" else value
            if name not in _OFFERS and (kept or not value):
                lines.append(b"%s: %s" % (name, kept))
        return b"\r\n".join([*lines, b"", b""])

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing comes any more."""
        self._answering = None
        super().connection_lost(exc)


def _without_offers(connection: bytes) -> bytes:
    """The value of a ``Connection`` header without the parts that only an offer needs."""
    names = (name.strip() for name in connection.split(b","))
    return b", ".join(name for name in names if name.lower() not in _OFFERS)
