"""Prometheus metrics of navigations, which a gateway with ``--navigations`` has beside those of reports."""

from __future__ import annotations

from collections import Counter as Reasons

from prometheus_client import CollectorRegistry, Counter

from uldp_transforms.ldp.reasons import Reason


class NavigationMeters:
    """Counters of lines and responses.

    Args:
        registry: of the gateway.
    """

    def __init__(self, registry: CollectorRegistry):
        self.requests = Counter(
            "navigation_requests",
            "responses to POST /navigations by status",
            ["status"],
            registry=registry,
            namespace="uldp_gateway",
        )
        self._accepted = Counter(
            "navigations_accepted", "navigations that were accepted", registry=registry, namespace="uldp_gateway"
        )
        self._refused = Counter(
            "navigations_refused",
            "lines that were refused, by reason",
            ["reason"],
            registry=registry,
            namespace="uldp_gateway",
        )

    def judged(self, accepted: int, refused: Reasons[Reason]) -> None:
        self._accepted.inc(accepted)
        for reason, number in refused.items():
            self._refused.labels(reason.code).inc(number)
