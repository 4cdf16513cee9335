"""How a row names its collection, and its window or base period."""

from __future__ import annotations

from typing import Any

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.windows import BasePeriods, rfc3339


def name_of(collection: Collection | None) -> dict[str, Any]:
    """The fields by which a row names its collection; all None if it was never established."""
    if collection is None:
        return {"collection_id": None, "collection_version": None, "fingerprint": None}
    return {
        "collection_id": collection.id,
        "collection_version": collection.version,
        "fingerprint": collection.fingerprint.hex(),
    }


def span_of(start: int | None, length: int | None) -> dict[str, Any]:
    """The fields that say when a window or base period begins and ends, from milliseconds; None if it has no start."""
    if start is None or length is None:
        return {"window_start": None, "window_end": None}
    return {"window_start": rfc3339(start), "window_end": rfc3339(start + length)}


def span_of_period(start: int | None, periods: BasePeriods | None) -> dict[str, Any]:
    """The same of the base period that begins at ``start``."""
    return span_of(start, None if start is None or periods is None else int(periods.end_of(start)) - start)
