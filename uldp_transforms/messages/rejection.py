"""Rejections of reports."""

from __future__ import annotations

import dataclasses

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.reasons import Reason


@dataclasses.dataclass(frozen=True)
class Rejection:
    """Rejected reports, grouped: from all messages of one size that arrived in the same millisecond.

    Attributes:
        reason: the first check that failed.
        num_reports: number of reports; an unreadable message or block counts as 1.
        message_bytes: size of the message or block.
        collection: None if unknown.
        period_start: start of the base period in ms; None if the event time is unknown.
        arrival_time: in ms; None for files.
        source: "message" or the name of a file.
    """

    reason: Reason
    num_reports: int
    message_bytes: int
    collection: Collection | None = None
    period_start: int | None = None
    arrival_time: int | None = None
    source: str = "message"
