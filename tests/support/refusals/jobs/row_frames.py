"""Refusals of frames of rows: calls and their sentences."""

from __future__ import annotations

import pyarrow as pa

from tests.support.refusals.tables import Refusal
from uldp_transforms.jobs.records.row_frame import _frame

REFUSED: list[Refusal] = [
    (
        ImportError,
        lambda: _frame(pa.table({"a": [1]}), "no_such_package"),
        'read_rows(form="no_such_package") needs no_such_package; install it, or ask for form="arrow"',
    ),
]
