"""Rows of each kind that a stream keeps in state until it writes them, and their bytes.

``python -m tests.support.kept_rows FILE`` writes the bytes of this tree. All names are those that earlier trees have
too, so the same file, copied into one, writes those of that tree.
"""

from __future__ import annotations

import base64
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro

from uldp_transforms.jobs.sinks.row_files import ENCODED
from uldp_transforms.rows import row_types
from uldp_transforms.rows.json_and_avro import to_json

KINDS: dict[str, tuple[Callable[..., Any], Any]] = {
    "estimates": (row_types.WindowedEstimate, row_types.ESTIMATE_SCHEMA),
    "values": (row_types.EstimatedValue, row_types.VALUE_SCHEMA),
    "rejected": (row_types.RejectedReport, row_types.REJECTED_SCHEMA),
    "ledger": (row_types.LedgerRow, row_types.LEDGER_SCHEMA),
    "health": (row_types.WindowHealth, row_types.HEALTH_SCHEMA),
    "counts": (row_types.WindowCounts, row_types.COUNTS_SCHEMA),
    "discovered": (row_types.DiscoveredValue, row_types.DISCOVERED_SCHEMA),
}
"""Kind -> class and schema of its rows."""

LATER = frozenset({"block_frequency", "judged"})
"""Fields of entries that the kept bytes lack. They take no number, so that all other fields keep their values."""

_SCALARS: dict[str, Callable[[int], Any]] = {
    "string": "text {}".format,
    "int": int,
    "long": (1 << 33).__add__,
    "double": (0.1).__mul__,
    "boolean": bool,
}


def _value(of: Any, numbers: Iterator[int], *, full: bool) -> Any:
    """A value of an Avro type; full: no null, and two entries in each array and map."""
    if isinstance(of, list):
        return _value(of[1], numbers, full=full) if full else None
    if isinstance(of, str):
        return _SCALARS[of](next(numbers))
    if "logicalType" in of:
        return f"2026-11-26T13:{next(numbers) % 60:02}:00Z"
    entries = range(2 if full else 0)
    made: dict[str, Callable[[], Any]] = {
        "record": lambda: {
            part["name"]: _value(part["type"], itertools.count(1) if part["name"] in LATER else numbers, full=full)
            for part in of["fields"]
        },
        "array": lambda: [_value(of["items"], numbers, full=full) for _ in entries],
        "map": lambda: {f"key {place}": _value(of["values"], numbers, full=full) for place in entries},
        "enum": lambda: of["symbols"][next(numbers) % len(of["symbols"])],
    }
    return made[of["type"]]()


def rows(kind: str) -> list[Any]:
    """A row with values in all fields, and one with as many nulls and empty lists as there can be."""
    make, schema = KINDS[kind]
    return [make(**_value(schema, itertools.count(1), full=full)) for full in (True, False)]


def of_earlier_fields(value: Any) -> Any:
    """The value of a field, its entries without fields that were added later."""
    if isinstance(value, list):
        return [of_earlier_fields(entry) for entry in value]
    if isinstance(value, dict):
        return {name: of_earlier_fields(inner) for name, inner in value.items() if name not in LATER}
    return value


def kept() -> dict[str, Any]:
    """Kind -> its rows as JSON, and their bytes in base64."""
    return {
        kind: [
            {
                "row": json.loads(to_json(row)),
                "bytes": base64.b64encode(ENCODED["avro"](row, fastavro.parse_schema(schema))).decode("ascii"),
            }
            for row in rows(kind)
        ]
        for kind, (_, schema) in KINDS.items()
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(f"{json.dumps(kept(), indent=1)}\n", encoding="utf-8")
