"""Refusals of frames of rows: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from uldp_transforms.jobs.records.row_frame import _frame

REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    (
        ImportError,
        lambda: _frame(pa.table({"a": [1]}), "no_such_package"),
        'read_rows(form="no_such_package") needs no_such_package; install it, or ask for form="arrow"',
    ),
]
