"""Prometheus metrics of the gateway. Labels contain nothing about a request except its verdict."""

from __future__ import annotations

import time
from collections import Counter as Reasons
from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms_gateway.admission import Verdict
from uldp_transforms_gateway.outlets.outlet import Undelivered

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram buckets of response times."""

_UNWELL = 10.0  # seconds after a failure
_SAY_EVERY = 10.0  # seconds


class Meters:
    """Counters of one gateway.

    Args:
        say: prints a sentence for the operator.
    """

    def __init__(self, say: Callable[[str], None]):
        self._say = say
        self._failed_at: float | None = None
        self._said_at: float | None = None
        self._answers: dict[int, Counter] = {}
        disable_created_metrics()
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        own: Any = {"registry": self.registry, "namespace": "uldp_gateway"}
        self.requests = Counter("requests", "responses to POST /reports by status", ["status"], **own)
        self.seconds = Histogram("request_seconds", "response time of POST /reports", buckets=SECONDS, **own)
        self._received = Counter("reports_received", "reports in the messages that were checked", **own)
        self._accepted = Counter("reports_accepted", "reports that were accepted for delivery", **own)
        self._refused = Counter("reports_refused", "reports that were rejected, by reason", ["reason"], **own)
        self._reports = Counter(
            "reports_delivered", "reports that were published, or spooled if there is a spool", **own
        )
        self._messages = Counter("messages_delivered", "packed messages that contain these reports", **own)
        self._bytes = Counter("bytes_delivered", "bytes of these messages", **own)
        self._failures = Counter("delivery_failures", "packed messages that were not published or spooled", **own)
        self._forwarded = Counter("messages_forwarded", "packed messages from the spool that were published", **own)
        self.connections_refused = Counter("connections_refused", "connections closed because of a limit", **own)
        self.app_requests = Counter("app_requests", "requests with a key, by the name of its app", ["app"], **own)
        self.app_limited = Counter("app_limited", "requests refused because their app sent too much", ["app"], **own)
        self._copies = Counter("copies", "copies of delivered messages of tokens, which are not published", **own)
        self.waiting = Gauge("requests_waiting", "complete requests without a response so far", **own)
        self.waiting_bytes = Gauge("bytes_waiting", "bytes of their bodies, and of bodies that are arriving", **own)

    def answered(self, status: int, seconds: float) -> None:
        """Count a response to ``POST /reports``."""
        self.seconds.observe(seconds)
        if status not in self._answers:
            self._answers[status] = self.requests.labels(str(status))
        self._answers[status].inc()

    def judged(self, *verdicts: Verdict) -> None:
        """Count the reports of messages."""
        accepted = sum(verdict.accepted for verdict in verdicts)
        refused = sum((verdict.refused for verdict in verdicts if verdict.refused), Reasons[Reason]())
        self._received.inc(accepted + refused.total())
        self._accepted.inc(accepted)
        for reason, number in refused.items():
            self._refused.labels(reason.code).inc(number)

    def too_large(self) -> None:
        """Count a message that was not read."""
        self.judged(Verdict(b"", 0, Reasons({Reason.TOO_LARGE: 1})))

    def copied(self) -> None:
        """Count a message that its token has sent before."""
        self._copies.inc()

    def delivered(self, number: int, messages: Sequence[bytes]) -> None:
        self._failed_at = None
        self._reports.inc(number)
        self._messages.inc(len(messages))
        self._bytes.inc(sum(map(len, messages)))

    def forwarded(self, number: int) -> None:
        self._forwarded.inc(number)

    def undelivered(self, error: Exception) -> None:
        """Count a failure, and log it at most every ten seconds."""
        self._failures.inc()
        self._tell(f"reports cannot be delivered, and their senders are told: {error}")

    def held_up(self, error: Exception) -> None:
        """Count a failure to deliver spool files, and log it at most every ten seconds."""
        self._failures.inc()
        reason = error if isinstance(error, (OSError, Undelivered)) else type(error).__name__  # others may quote data
        self._tell(f"reports stay in the spool and are not lost: {reason}")

    def _tell(self, sentence: str) -> None:
        now = self._failed_at = time.monotonic()
        if self._said_at is None or now - self._said_at >= _SAY_EVERY:
            self._said_at = now
            self._say(sentence)

    @property
    def is_well(self) -> bool:
        """Whether no delivery failed in the last ten seconds, or one has succeeded since."""
        return self._failed_at is None or time.monotonic() - self._failed_at > _UNWELL

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self.registry)
