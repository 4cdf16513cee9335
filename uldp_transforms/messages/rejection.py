"""Rejections of reports, and of messages and files that could not be read."""

from __future__ import annotations

import dataclasses

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.reasons import Reason


@dataclasses.dataclass(frozen=True)
class Rejection:
    """Rejected reports, grouped: from all messages of one size that arrived in the same millisecond.

    How many reports an unread message or file contains is unknown. It is counted as a message or a file, and never as
    a report.

    Attributes:
        reason: the first check that failed.
        num_reports: number of reports that were read and rejected, or whose number a manifest states.
        message_bytes: size of the message, or of the unread part of a file.
        collection: None if unknown.
        period_start: start of the base period in ms; None if the event time is unknown.
        arrival_time: in ms; None for files.
        source: "message" or the name of a file.
        num_messages: number of messages that could not be read.
        num_files: 1 for the first part of a file that could not be read, 0 for its other parts.
    """

    reason: Reason
    num_reports: int
    message_bytes: int
    collection: Collection | None = None
    period_start: int | None = None
    arrival_time: int | None = None
    source: str = "message"
    num_messages: int = 0
    num_files: int = 0

    @property
    def number(self) -> int:
        """Number of rejected reports and unread messages."""
        return self.num_reports + self.num_messages
