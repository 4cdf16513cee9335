"""Refusals of rows that wait in a stream's state: calls and their sentences."""

from __future__ import annotations

from tests.support.refusals.tables import Refusal
from uldp_transforms.collector.pending_rows import MARK, records_of

SCHEMA = {"type": "record", "name": "Example", "fields": [{"name": "number", "type": "long"}]}

REFUSED: list[Refusal] = [
    (
        ValueError,
        lambda: records_of([MARK + b"\1\2\0"], SCHEMA),
        "a pending Example has 2 fields, but this version knows only 1",
    ),
    (
        ValueError,
        lambda: records_of([b"\0\0"], SCHEMA),
        "the bytes of a pending Example are those of no earlier version",
    ),
]
