"""How a row names its collection, and its window or base period."""

from __future__ import annotations

from typing import Any

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.windows import rfc3339


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
