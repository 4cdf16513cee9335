"""When nearly everything is refused for one reason, the job is wrong, not the reports.

Refused reports are acknowledged and gone. So a stream that refuses nearly all of them stops instead: the messages stay
in their queue, and a job that was mended reads them.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable

from uldp_transforms.beam.spec.job_spec import JobSpec
from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.errors import UldpError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.decoder import Decoded, MessageDecoder
from uldp_transforms.messages.refusal_causes import sentence

CONSECUTIVE = 1_000
"""Reports of which the share is taken in a stream, at least; more if more are decoded together."""


_NAMED = 3  # collections in a sentence


class RejectedShareError(UldpError):
    """Nearly all reports of a stream are refused for one reason. The sentence names the likely cause."""


def facts_of(spec: JobSpec, message: bytes | None = None) -> dict[str, str]:
    """Description of a job, and of a message that it rejects."""
    known = ", ".join(collection.fingerprint[:PREFIX_BYTES].hex() for collection in spec.collections[:_NAMED])
    known += f" and {len(spec.collections) - _NAMED} more" if len(spec.collections) > _NAMED else ""
    facts = {"known": known, "lateness": _duration(spec.allowed_lateness)}
    if message is not None:
        stranger = MessageDecoder(spec.catalog, None, require_ids=False).decode([message]).stranger
        facts |= {"fingerprint": stranger.hex()} if stranger else {}
    return facts


class Watch:
    """Looks at the last reports of a worker; shared by its threads.

    Args:
        spec: of the job, for an input that does not end.
    """

    def __init__(self, spec: JobSpec):
        self._share = spec.rejected_share
        self._facts = facts_of(spec)
        self._parts: deque[tuple[int, Counter[Reason]]] = deque()
        self._lock = threading.Lock()

    def look(self, decoded: Decoded) -> None:
        """Take note of reports that were decoded together.

        Raises:
            RejectedShareError: if more than the share of the last ones was refused for one reason. They are not
                forgotten: the same messages fail again when they are tried again.
        """
        rejected: Counter[Reason] = Counter()
        for rejection in decoded.rejections:
            rejected[rejection.reason] += rejection.num_reports
        with self._lock:
            self._parts.append((decoded.num_received.total(), rejected))
            total = sum(number for number, _ in self._parts)
            while total - self._parts[0][0] >= CONSECUTIVE:
                total -= self._parts.popleft()[0]
            sums = _sum(rejected for _, rejected in self._parts)
        for reason, number in sums.most_common(1):
            if total >= CONSECUTIVE and number > self._share * total:
                off_by = _duration(decoded.off_by.get(reason, 0))
                facts = self._facts | {"fingerprint": decoded.stranger.hex(), "off_by": off_by}
                raise RejectedShareError(sentence(reason, number, total, facts))


def _sum(parts: Iterable[Counter[Reason]]) -> Counter[Reason]:
    total: Counter[Reason] = Counter()
    for part in parts:
        total.update(part)
    return total


def _duration(milliseconds: int) -> str:
    """In the largest unit of which it has at least one, rounded up."""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if milliseconds >= length:
            return f"{-(-milliseconds // length)}{unit}"
    return f"{milliseconds}ms"
