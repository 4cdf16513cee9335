"""The fields by which a row identifies its collection, and its window or base period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from uldp_transforms.ldp.alphabets.dimensions import group_text
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.model import keeps_memos
from uldp_transforms.rows.row_types import DimensionValue
from uldp_transforms.windows import BasePeriods, moment_of, rfc3339


class Named(Protocol):
    """A collection, or a question with several versions."""

    @property
    def id(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def fingerprint(self) -> bytes: ...


def name_of(collection: Named | None) -> dict[str, Any]:
    """The fields that identify the collection of a row; all None if it is unknown."""
    if collection is None:
        return {"collection_id": None, "collection_version": None, "fingerprint": None}
    return {
        "collection_id": collection.id,
        "collection_version": collection.version,
        "fingerprint": collection.fingerprint.hex(),
    }


def fields_of_group(pairs: Sequence[tuple[str, str]], *, has_groups: bool) -> dict[str, Any]:
    """The fields that identify the group of a row.

    Args:
        pairs: (name, value) of each of its dimensions; none for the total.
        has_groups: whether the collection, or a version of the question, has dimensions.
    """
    dimensions = tuple(DimensionValue(name, value) for name, value in pairs)
    return {"dimensions": dimensions, "group": group_text(pairs) if has_groups else None}


def reports_of_a_person(collection: Collection, place: Mapping[str, Any]) -> int | None:
    """Maximum number of reports per person in the window of a row; None if unknown.

    It is unknown if the collection does not declare a client window. If the reports of a person are independent, it is
    taken as 1.
    """
    if collection.asked is None or place["window_start"] is None:
        return None if keeps_memos(collection) else 1
    return collection.asked.number_between(*(moment_of(place[name]) for name in ("window_start", "window_end")))


def span_of(start: int | None, length: int | None) -> dict[str, Any]:
    """The start and end fields of a window or base period, from milliseconds; None if it has no start."""
    if start is None or length is None:
        return {"window_start": None, "window_end": None}
    return {"window_start": rfc3339(start), "window_end": rfc3339(start + length)}


def span_of_period(start: int | None, periods: BasePeriods | None) -> dict[str, Any]:
    """The start and end fields of the base period that begins at ``start``."""
    return span_of(start, None if start is None or periods is None else int(periods.end_of(start)) - start)
