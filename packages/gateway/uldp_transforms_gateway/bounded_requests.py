"""Uvicorn's HTTP protocol with limits, in bytes and in time, on everything that a connection sends besides bodies.

Uvicorn itself accepts a request head of any length and at any speed, so a few connections could use up the memory, and
silent ones all places.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uldp_transforms_gateway.http_offers import IgnoresOffers
from uldp_transforms_gateway.limits import Connections, peer_of

MOST_HEADERS = 100
"""Maximum number of headers of a request, and of trailers after its body."""

MOST_BYTES = 64 << 10
"""Maximum size of a request without its body, not counting the bytes received together with its first byte; chunked
encoding may double the size of the body.
"""

SECONDS = 20.0
"""Seconds within which the head of a request must be complete, from the opening of the connection, the previous answer,
or the first byte.
"""

SHORT_SECONDS = 2.0
"""The same while more than half of all connections are taken."""


class BoundedRequests(IgnoresOffers):
    """A connection that is closed if a head does not end in time, or at once if there are too many connections.

    Args:
        places: the connections of all clients.
        options: what uvicorn gives a protocol.
    """

    def __init__(self, *, places: Connections, **options: Any):
        super().__init__(**options)
        self._places = places
        self._peer: str | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._bytes = self._body = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The next head may arrive."""
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn's narrower word
        peer = peer_of(self.client)
        if self._places.take(peer):
            self._peer = peer
            self._wait()
        else:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """The first byte of a head has arrived."""
        super().on_message_begin()
        self._began, self._bytes, self._body = True, 0, 0
        self._in_head, self._trailers, self._hosts = True, 0, 0
        self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header has arrived, or one trailer of a chunked body, which is dropped.

        uvicorn would add trailers to the headers, which a proxy may have set; a sender could replace them so (RFC 9110,
        section 6.5.1).
        """
        if (len(self.headers) if self._in_head else self._trailers) >= MOST_HEADERS:
            raise ValueError("too many headers")  # the parser takes it for a fault of the request
        if self._in_head:
            self._hosts += name.lower() == b"host"
            value = value.strip(b" \t")  # the parser leaves those at the end (RFC 9110, section 5.5)
            super().on_header(name, value)
        else:
            self._trailers += 1

    def on_headers_complete(self) -> None:
        """The head is complete; it must have one ``Host``, which HTTP/1.0 does not need (RFC 9112, section 3.2)."""
        if self._hosts > 1 or (not self._hosts and self.parser.get_http_version() != "1.0"):
            raise ValueError("a request must have one Host")  # the parser takes it for a fault of the request
        self._in_head = False
        self._no_longer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Part of a body has arrived."""
        self._body += len(body)
        super().on_body(body)

    def data_received(self, data: bytes) -> None:
        """Some bytes came."""
        self._began = False
        super().data_received(data)
        if not self._began:
            self._bytes += len(data)
            if self._bytes > MOST_BYTES + 2 * self._body and not self.transport.is_closing():
                self.refuse()

    def on_response_complete(self) -> None:
        """A response has been sent; the rest of its request and the next head may arrive."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, and nothing more arrives."""
        self._no_longer()
        if self._peer is not None:
            self._places.give_back(self._peer)
            self._peer = None
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._no_longer()
        self._patience = self.loop.call_later(
            SHORT_SECONDS if self._places.are_scarce else SECONDS, self.timeout_keep_alive_handler
        )

    def _no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
