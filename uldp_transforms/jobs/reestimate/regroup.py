"""Stored counts of short windows, added up into longer ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import Windows, rfc3339

Key = tuple[Any, ...]
"""Id and version of a collection, start and end of a window in milliseconds; both are 0 for all of time."""


def check_stored(stored: Iterable[Key], windows: Windows) -> None:
    """Refuse what cannot be added up: windows of one job that overlap, or that lie in more than one base period.

    Args:
        stored: keys of the windows that one job counted.
        windows: to be made of them.

    Raises:
        SpecError: naming the first such window.
    """
    ends: dict[Key, int] = {}
    for *names, start, end in sorted(stored):
        if start == end:
            raise SpecError("--window must be absent where counts were not stored by window, got one")
        if end > windows.periods.end_of(start):
            raise SpecError(
                f"--window must have base periods that are made of whole stored windows, got {_span(start, end)} stored"
            )
        if start < ends.get(tuple(names), start):
            raise SpecError(
                f"--window must be absent where stored windows overlap, got {_span(start, end)} stored, which begins "
                "before another one ends"
            )
        ends[tuple(names)] = end


def _span(start: int, end: int) -> str:
    return f"{rfc3339(start)} to {rfc3339(end)}"


def regrouped(
    stored: Mapping[Key, list[dict[str, Any]]], whole: set[Key], windows: Windows, seen_until: int | None
) -> tuple[dict[Key, list[dict[str, Any]]], set[Key]]:
    """The rows of each longer window, and which of these windows are whole: those whose stored windows all are.

    Args:
        stored: rows of counts by window; of what is not there were no reports.
        whole: keys of stored windows of which nothing is missing.
        windows: that all stored windows lie in.
        seen_until: end of the last window that a stream has counted, in milliseconds: of a longer window that ends
            later some may be missing. None: there was no stream.
    """
    longer: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    cut: set[Key] = set()
    for stored_key, rows in stored.items():
        *names, first, _ = stored_key
        for start in windows.starts_around(first):
            end = windows.end_of(start)
            key = (*names, start, end)
            longer[key] += [row | {"window_start": start, "window_end": end} for row in rows]
            if stored_key not in whole or (seen_until is not None and end > seen_until):
                cut.add(key)
    return longer, set(longer) - cut
