"""Rows about rejected reports: the reason, but never the content."""

from __future__ import annotations

from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.row_identity import name_of, span_of_period
from uldp_transforms.rows.row_types import RejectedReport
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, BasePeriods, rfc3339


def rejected_row(rejection: Rejection, periods: BasePeriods | None, run: str | None = None) -> RejectedReport:
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
        num_messages=rejection.num_messages,
        num_files=rejection.num_files,
    )


def _moment(time: int | None) -> str | None:
    """A time of arrival as text; None if rows cannot represent it, because some sources let senders choose it."""
    return rfc3339(time) if time is not None and MIN_EVENT_TIME <= time < MAX_EVENT_TIME else None
