"""Which web pages may send reports, and under which names the gateway answers.

A browser sends a simple POST of any page without asking; only the answer is hidden from the page. The request names its
page in ``Origin``, so the gateway refuses it there. A page can also let its own name resolve to the address of the
gateway (DNS rebinding), and is then of the same origin. A name that was reached over TLS cannot be such a name, because
somebody has a certificate for it; nor can an address, or ``localhost``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from uldp_transforms_gateway.refusals import FORBIDDEN, Refused

ANY = "*"
"""Stands for every origin."""


class Origins:
    """Origins of pages that may send reports; a page whose origin is the gateway's own host always may.

    Over plain HTTP, the own host must be an address, ``localhost``, or a listed host.

    Args:
        allowed: such as ``https://example.org``, or ``*`` for all.
        hosts: names of the gateway, with or without a port. If there are any, requests under other names are refused,
            unless those are addresses or ``localhost``.
    """

    def __init__(self, allowed: Collection[str] = (), hosts: Collection[str] = ()):
        self._allowed = frozenset(allowed)
        self._hosts = frozenset(map(str.lower, hosts))

    def check(self, origin: str | None, host: str | None) -> None:
        """Raise Refused if a request with this ``Origin`` and ``Host`` comes from a page that may not send.

        A request without ``Origin`` does not come from a script or form of a page.
        """
        self.check_host(host)
        if origin is None or ANY in self._allowed or origin in self._allowed:
            return
        scheme, _, own = origin.partition("://")
        if scheme not in ("http", "https") or not own or own != host:
            raise Refused(FORBIDDEN, "origin")
        if scheme == "http" and not self._is_own(own):
            raise Refused(FORBIDDEN, "origin")

    def check_host(self, host: str | None) -> None:
        """Raise Refused if hosts are listed and this ``Host`` is another one."""
        if self._hosts and not self._is_own(host or ""):
            raise Refused(FORBIDDEN, "host")

    def _is_own(self, host: str) -> bool:
        """Whether the name of a host, with or without a port, is listed, or cannot be that of another page."""
        full = host.lower()
        name = _without_port(full).rstrip(".")
        return bool({full, name} & self._hosts) or _is_local(name)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() and not name.endswith(":") else host


def _is_local(name: str) -> bool:
    """Whether a name is an address or ``localhost``, which no page can claim by DNS."""
    is_bracketed = name.startswith("[") and name.endswith("]")
    try:
        ipaddress.IPv6Address(name[1:-1]) if is_bracketed else ipaddress.IPv4Address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
    return True
