"""What was refused, and why; never what it said.

Annotations are real objects here, and ``Optional`` is spelled out: Beam makes schemas of nothing else.
"""

# ruff: noqa: UP045
from typing import NamedTuple, Optional

from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.row_identity import name_of, span_of_period
from uldp_transforms.schemas import load
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, BasePeriods, rfc3339

REJECTED_SCHEMA = load("rejected_report.avsc")


class RejectedReport(NamedTuple):
    """Reports that were not counted; the fields are those of the Avro schema."""

    reason: str
    num_reports: int
    collection_id: Optional[str]
    collection_version: Optional[int]
    fingerprint: Optional[str]
    window_start: Optional[str]
    window_end: Optional[str]
    received_at: Optional[str]
    message_bytes: int
    source: str
    run: Optional[str] = None


def rejected_row(rejection: Rejection, periods: Optional[BasePeriods], run: Optional[str] = None) -> RejectedReport:
    """The row of a rejection; ``periods`` are the base periods of the job, ``run`` is its run."""
    return RejectedReport(
        **name_of(rejection.collection),
        **span_of_period(rejection.period_start, periods),
        reason=rejection.reason.code,
        num_reports=rejection.num_reports,
        received_at=_moment(rejection.arrival_time),
        message_bytes=rejection.message_bytes,
        source=rejection.source,
        run=run,
    )


def _moment(time: Optional[int]) -> Optional[str]:
    """A time of arrival; None if rows cannot name it: a source may let its senders choose it."""
    return rfc3339(time) if time is not None and MIN_EVENT_TIME <= time < MAX_EVENT_TIME else None
