"""Registration of rows with Beam: each kind has a row coder, so that Beam's sinks, SQL and data frames accept it."""

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
    """Convert a time in a row to Beam's ``Timestamp``."""
    return Timestamp.from_rfc3339(text)
