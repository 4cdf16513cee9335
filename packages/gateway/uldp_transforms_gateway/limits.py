"""Capacity of the gateway in connections, requests and bytes; clients above it are refused or asked to retry."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import time
from collections import Counter
from collections.abc import Iterator

import anyio

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.refusals import BAD_REQUEST, RETRY_AFTER, TIMEOUT, TOO_LARGE, TOO_MANY, Refused

SHORT_PATIENCE = 1.0
"""Seconds that a body may take to arrive when its room is needed for another one."""

_DIGITS = 20
"""Maximum number of digits of a length after leading zeros, more than the length of any body has."""


def peer_of(client: tuple[str, int] | None) -> str:
    """The identity of a peer: an IPv4 address, or the /64 network of an IPv6 address; "" if unknown."""
    return "" if client is None else _peer_at(client[0])


@functools.lru_cache(maxsize=4096)
def _peer_at(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))


class Connections:
    """Places for open connections.

    Args:
        most: number of places.
        of_a_peer: most places that one peer gets; None means all.
        meters: count the connections that get none.
    """

    def __init__(self, most: int, of_a_peer: int | None, meters: Meters):
        self._most = most
        self._of_a_peer = most if of_a_peer is None else of_a_peer
        self._meters = meters
        self._taken: Counter[str] = Counter()
        self._total = 0

    def take(self, peer: str) -> bool:
        """Take a place; returns whether there is one."""
        if self._total >= self._most or self._taken[peer] >= self._of_a_peer:
            self._meters.connections_refused.inc()
            return False
        self._taken[peer] += 1
        self._total += 1
        return True

    def give_back(self, peer: str) -> None:
        """Free the place of a connection that is closed."""
        self._total -= 1
        self._taken[peer] -= 1
        if not self._taken[peer]:
            del self._taken[peer]

    @property
    def are_scarce(self) -> bool:
        """Whether more than half of the places are taken."""
        return 2 * self._total > self._most


class Body:
    """Number of bytes reserved so far for the body of one request.

    Args:
        limits: have the room.
        peer: who sends it.
        most: bytes that may come.
    """

    def __init__(self, limits: Limits, peer: str, most: int):
        self.peer = peer
        self.size = 0
        self.began = time.monotonic()
        self._limits = limits
        self._most = most
        self._scope: anyio.CancelScope | None = None

    @contextlib.contextmanager
    def reading(self, patience: float) -> Iterator[None]:
        """Limit the time for receiving the body to this many seconds; raises Refused."""
        with anyio.move_on_after(patience) as scope:
            self._scope = scope
            yield
        if scope.cancel_called:
            raise Refused(TIMEOUT, "timeout")
        self._limits.wait(self)

    def came(self, size: int) -> None:
        """Reserve space for bytes that arrived; raises Refused."""
        if self.size + size > self._most:
            raise Refused(TOO_LARGE, Reason.TOO_LARGE.code)
        self._limits.take(self, size)

    def give_up(self) -> None:
        """End the reading."""
        if self._scope is not None:
            self._scope.cancel()


class Limits:
    """Room for bodies. Bytes are reserved when they arrive; the length that a request announces reserves nothing.

    A body that is incomplete after ``SHORT_PATIENCE`` loses its reservation when other bytes need it.

    Args:
        body: bytes of one.
        waiting: complete requests that have no answer yet.
        waiting_bytes: bytes of all bodies, complete or not.
        meters: show what is taken.
        peer_bytes: bytes of the bodies of one peer; None means all.
    """

    def __init__(self, body: int, waiting: int, waiting_bytes: int, meters: Meters, peer_bytes: int | None = None):
        self._body = body
        self._waiting = waiting
        self._waiting_bytes = waiting_bytes
        self._peer_bytes = waiting_bytes if peer_bytes is None else peer_bytes
        self._requests = 0
        self._bytes = 0
        meters.waiting.set_function(lambda: self._requests)
        meters.waiting_bytes.set_function(lambda: self._bytes)
        self._of_peers: Counter[str] = Counter()
        self._coming: dict[Body, None] = {}

    @contextlib.contextmanager
    def room_for(self, length: str | None, peer: str = "") -> Iterator[Body]:
        """Space for a body with this ``Content-Length``, or of unknown length; released at the end.

        Raises:
            Refused: it is too long, or too many requests wait already.
        """
        body = Body(self, peer, self._size(length))
        self._check_waiting()
        self._coming[body] = None
        try:
            yield body
        finally:
            if body in self._coming:
                del self._coming[body]
            else:
                self._requests -= 1
            self._add(body, -body.size)

    def take(self, body: Body, size: int) -> None:
        """Reserve space for more bytes of a body; raises Refused."""
        lacking = self._bytes + size - self._waiting_bytes
        over = self._of_peers[body.peer] + size > self._peer_bytes
        if over or (lacking > 0 and not self._could_free(lacking, body)):
            raise Refused(TOO_MANY, "busy", RETRY_AFTER)
        self._add(body, size)

    def wait(self, body: Body) -> None:
        """A place for a complete body; raises Refused."""
        self._check_waiting()
        del self._coming[body]
        self._requests += 1

    def _could_free(self, lacking: int, needy: Body) -> bool:
        """Drop the oldest incomplete bodies, if that frees this much space; returns whether it does."""
        late = time.monotonic() - SHORT_PATIENCE
        given_up = []
        for body in self._coming:  # the oldest first
            if lacking <= 0 or body.began > late:
                break
            if body is not needy and body.size:
                given_up.append(body)
                lacking -= body.size
        if lacking > 0:
            return False
        for body in given_up:
            body.give_up()
            self._add(body, -body.size)
        return True

    def _check_waiting(self) -> None:
        if self._requests >= self._waiting:
            raise Refused(TOO_MANY, "busy", RETRY_AFTER)

    def _size(self, length: str | None) -> int:
        """Number of bytes that can still be reserved."""
        if length is None:
            return self._body
        if not (length.isascii() and length.isdigit()):
            raise Refused(BAD_REQUEST, "content_length")
        size = int(length.lstrip("0")[:_DIGITS] or "0")
        if size > self._body:
            raise Refused(TOO_LARGE, Reason.TOO_LARGE.code)
        return size

    def _add(self, body: Body, size: int) -> None:
        body.size += size
        self._bytes += size
        self._of_peers[body.peer] += size
        if not self._of_peers[body.peer]:
            del self._of_peers[body.peer]
