"""``POST /navigations``: checks the lines that pages send, adds the time of arrival, and keeps them."""

from __future__ import annotations

import time
from collections import Counter

from prometheus_client import CollectorRegistry
from prometheus_client import Counter as Metric
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms_gateway.apps.uses import Use
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.navigations.navigation_log import NavigationLog
from uldp_transforms_gateway.navigations.page_lines import checked
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.refusals import ACCEPTED, STATUS, TOO_LARGE, Refused
from uldp_transforms_gateway.web import Door

MOST_BYTES = 1 << 16
"""Maximum size of the body of a request, several hundred lines."""


class NavigationDesk:
    """Answers requests when their lines are on disk.

    Args:
        log: keeps lines.
        door: lets requests in.
        meters: count.
        most: number of lines of one request; None means no limit but that of its size.
    """

    def __init__(self, log: NavigationLog, door: Door, meters: Meters, most: int | None = None):
        self._log = log
        self._door = door
        self._meters = meters
        self._most = most
        self._own = _Meters(meters.registry)

    async def navigations(self, request: Request) -> Response:
        """``POST /navigations``."""
        response = await self._door.answer(request, self, self._too_large)
        self._own.requests.labels(str(response.status_code)).inc()
        return response

    def _too_large(self) -> None:
        self._own.judged(0, Counter({Reason.TOO_LARGE: 1}))

    async def deliver(self, message: bytes, use: Use | None = None) -> Response:
        """The response to a body, when its lines are on disk."""
        if len(message) > MOST_BYTES:
            raise Refused(TOO_LARGE, Reason.TOO_LARGE.code)
        lines, refused = checked(message, time.time())
        if self._most is not None and len(lines) + refused.total() > self._most:
            raise Refused(TOO_LARGE, Reason.TOO_LARGE.code)
        self._own.judged(len(lines), refused)
        shown = {reason.code: number for reason, number in refused.items()}
        if not lines:
            reason = max(refused, key=refused.__getitem__)
            return JSONResponse({"reason": reason.code, "refused": shown}, STATUS[reason])
        try:
            await self._log.write(b"".join(lines), use)
        except Undelivered as error:
            self._meters.undelivered(error)
            raise
        return JSONResponse({"spooled": len(lines)} | ({"refused": shown} if shown else {}), ACCEPTED)

    def again(self, message: bytes) -> Response:
        """The response to a copy of a body whose lines are on disk."""
        lines, _ = checked(message, time.time())
        return JSONResponse({"spooled": len(lines)}, ACCEPTED)


class _Meters:
    """Prometheus counters of lines and responses, beside those of reports.

    Args:
        registry: of the gateway.
    """

    def __init__(self, registry: CollectorRegistry):
        self.requests = Metric(
            "navigation_requests",
            "responses to POST /navigations by status",
            ["status"],
            registry=registry,
            namespace="uldp_gateway",
        )
        self._accepted = Metric(
            "navigations_accepted", "navigations that were accepted", registry=registry, namespace="uldp_gateway"
        )
        self._refused = Metric(
            "navigations_refused",
            "lines that were refused, by reason",
            ["reason"],
            registry=registry,
            namespace="uldp_gateway",
        )

    def judged(self, accepted: int, refused: Counter[Reason]) -> None:
        self._accepted.inc(accepted)
        for reason, number in refused.items():
            self._refused.labels(reason.code).inc(number)
