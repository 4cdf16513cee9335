"""Stop a stream in which nearly all reports are rejected for one reason.

Such a stream indicates a wrong configuration. Rejected reports are acknowledged and lost, so the stream stops instead:
the messages stay in their queue until a corrected job reads them.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable

from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.errors import UldpError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.decoder import Decoded, MessageDecoder
from uldp_transforms.messages.refusal_causes import Received, sentence
from uldp_transforms.spec.job_spec import JobSpec

CONSECUTIVE = 1_000
"""Minimum number of reports over which a stream computes the share; a larger batch is not split."""


_NAMED = 3  # maximum number of collections in a message


class RejectedShareError(UldpError):
    """Nearly all reports of a stream were rejected for one reason; the message names the likely cause."""


def facts_of(spec: JobSpec, message: bytes | None = None) -> dict[str, str]:
    """Facts about a job, and about a message that it rejects."""
    known = ", ".join(collection.fingerprint[:PREFIX_BYTES].hex() for collection in spec.collections[:_NAMED])
    known += f" and {len(spec.collections) - _NAMED} more" if len(spec.collections) > _NAMED else ""
    facts = {"known": known, "lateness": _duration(spec.allowed_lateness)}
    if message is not None:
        stranger = MessageDecoder(spec.catalog, None, require_ids=False).decode([message]).stranger
        facts |= {"fingerprint": stranger.hex()} if stranger else {}
    return facts


class Watch:
    """Monitor of the last reports of a worker, shared by its threads.

    Args:
        spec: specification of the job, for unbounded input.
    """

    def __init__(self, spec: JobSpec):
        self._share = spec.rejected_share
        self._facts = facts_of(spec)
        self._parts: deque[tuple[Received, Counter[Reason]]] = deque()
        self._lock = threading.Lock()

    def look(self, decoded: Decoded) -> None:
        """Record reports that were decoded together; a message that could not be read counts like a report here.

        Raises:
            RejectedShareError: if more than the allowed share of the last reports was rejected for one reason. They
            stay recorded, so a retry with the same messages fails again.
        """
        rejected: Counter[Reason] = Counter()
        for rejection in decoded.rejections:
            rejected[rejection.reason] += rejection.number
        unread = sum(rejection.num_messages for rejection in decoded.rejections)
        with self._lock:
            self._parts.append((Received(int(decoded.received.sum()), unread), rejected))
            total = sum(received.total for received, _ in self._parts)
            while total - self._parts[0][0].total >= CONSECUTIVE:
                total -= self._parts.popleft()[0].total
            sums = _sum(rejected for _, rejected in self._parts)
            received = Received(*map(sum, zip(*(received for received, _ in self._parts))))
        for reason, number in sums.most_common(1):
            if total >= CONSECUTIVE and number > self._share * total:
                off_by = _duration(decoded.off_by.get(reason, 0))
                facts = self._facts | {"fingerprint": decoded.stranger.hex(), "off_by": off_by}
                raise RejectedShareError(sentence(reason, number, received, facts))


def _sum(parts: Iterable[Counter[Reason]]) -> Counter[Reason]:
    total: Counter[Reason] = Counter()
    for part in parts:
        total.update(part)
    return total


def _duration(milliseconds: int) -> str:
    """Format a duration in its largest whole unit, rounded up."""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if milliseconds >= length:
            return f"{-(-milliseconds // length)}{unit}"
    return f"{milliseconds}ms"
