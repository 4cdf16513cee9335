"""What the gateway's parser of HTTP reads from the bytes of a connection, without a network.

``python -m packages.gateway.tests.support.http_heads --seconds 60`` fuzzes it, guided by coverage.
"""

from __future__ import annotations

import asyncio
import functools
import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

from uvicorn import Config
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from tests.fuzz import guided
from uldp_transforms_gateway import http_offers
from uldp_transforms_gateway.http_offers import IgnoresOffers

CORPUS = Path(__file__).parents[1] / "corpus"


class Request(NamedTuple):
    """A request as the gateway's application would get it."""

    method: bytes
    url: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    is_complete: bool


class _Transport(asyncio.Transport):
    """Takes the response; nobody reads it."""

    def __init__(self) -> None:
        super().__init__()
        self._is_closed = False

    def write(self, data: Any) -> None:
        """Ignore the bytes."""

    def close(self) -> None:
        self._is_closed = True

    def is_closing(self) -> bool:
        return self._is_closed

    def pause_reading(self) -> None:
        """Nothing is read here."""

    def resume_reading(self) -> None:
        """Nothing is read here."""


class _Recorded(IgnoresOffers):
    """Keeps the requests; none is answered."""

    def __init__(self) -> None:
        config, loop = _server()
        super().__init__(config=config, server_state=ServerState(), app_state={}, _loop=loop)
        self.requests: list[Request] = []

    def on_headers_complete(self) -> None:
        is_offer = self.parser.should_upgrade()
        super().on_headers_complete()
        if not is_offer:
            self.requests.append(Request(self.parser.get_method(), bytes(self.url), tuple(self.headers), b"", False))

    def on_body(self, body: bytes) -> None:
        self.requests[-1] = self.requests[-1]._replace(body=self.requests[-1].body + body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        is_offer = self.parser.should_upgrade()
        super().on_message_complete()
        if not is_offer:
            self.requests[-1] = self.requests[-1]._replace(is_complete=True)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle  # as the gateway's, but without a task


@functools.cache
def _server() -> tuple[Config, asyncio.AbstractEventLoop]:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        """Never called."""

    config = Config(application, log_config=None, access_log=False)  # type: ignore[arg-type]  # it takes any
    config.load()
    return config, asyncio.new_event_loop()


def requests_in(*parts: bytes) -> tuple[list[Request], bool]:
    """The requests of a connection whose bytes come in these parts, and whether an invalid one followed."""
    protocol = _Recorded()
    protocol.logger.disabled = True
    protocol.connection_made(_Transport())  # type: ignore[arg-type]  # uvicorn's own type of transports
    for part in parts:
        protocol.data_received(part)
    protocol.connection_lost(None)
    return protocol.requests, protocol._is_broken


def check_heads(content: bytes) -> None:
    """However the bytes come, the requests are the same: no body is a request of its own because of a packet's end."""
    whole = requests_in(content)
    rng = random.Random(content)
    for _ in range(3):
        cuts = sorted(rng.randint(0, len(content)) for _ in range(rng.choice((1, 2, 5))))
        parts = [content[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(content)])]
        assert requests_in(*(part for part in parts if part)) == whole, f"cuts at {cuts}"


def first_heads() -> list[bytes]:
    """Requests with lengths, chunks and offers, one after the other on a connection."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    post = b"POST /reports HTTP/1.1\r\nHost: a\r\n"
    body = b"POST /x HTTP/1.1\r\nContent-Length: 1\r\n\r\na"
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    chunks = b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    get = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    return [post + length + body, post + offer + length + body + get, post + chunks + get, post + offer + chunks, get]


TARGETS = {
    "heads": guided.Target(check_heads, (sys.modules[__name__], http_offers, httptools_impl), first_heads),
}

if __name__ == "__main__":
    sys.exit(guided.main(targets=TARGETS, corpus=CORPUS))
