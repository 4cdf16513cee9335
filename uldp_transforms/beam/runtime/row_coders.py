"""Rows as Beam knows them: each kind has the coder of its fields, so that Beam's sinks, SQL and data frames take it."""

from __future__ import annotations

from apache_beam import coders
from apache_beam.utils.timestamp import Timestamp

from uldp_transforms.rows.row_types import (
    DiscoveredValue,
    EstimatedValue,
    LedgerRow,
    RejectedReport,
    WindowCounts,
    WindowedEstimate,
    WindowHealth,
)

ROWS = (DiscoveredValue, EstimatedValue, LedgerRow, RejectedReport, WindowCounts, WindowHealth, WindowedEstimate)

for _row in ROWS:
    coders.registry.register_coder(_row, coders.RowCoder)


def timestamp_of(text: str) -> Timestamp:
    """A time in a row as Beam's ``Timestamp``."""
    return Timestamp.from_rfc3339(text)
