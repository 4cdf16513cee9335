"""Which web pages may send reports.

A browser sends a simple POST of any page without asking; only the answer is hidden from the page. The request names its
page in ``Origin``, so the gateway refuses it there.
"""

from __future__ import annotations

from collections.abc import Collection

from uldp_transforms.jobs.gateway.refusals import FORBIDDEN, Refused

ANY = "*"
"""Stands for every origin."""


class Origins:
    """Origins of pages that may send reports; a page whose origin is the gateway's own host always may.

    Args:
        allowed: such as ``https://example.org``, or ``*`` for all.
    """

    def __init__(self, allowed: Collection[str] = ()):
        self._allowed = frozenset(allowed)

    def check(self, origin: str | None, host: str | None) -> None:
        """Raise Refused if a request with this ``Origin`` and ``Host`` comes from a page that may not send.

        A request without ``Origin`` does not come from a script or form of a page.
        """
        if origin is None or ANY in self._allowed or origin in self._allowed:
            return
        scheme, _, own = origin.partition("://")
        if scheme not in ("http", "https") or not own or own != host:
            raise Refused(FORBIDDEN, "origin")
