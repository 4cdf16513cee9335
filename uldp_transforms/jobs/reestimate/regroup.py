"""Combines stored counts of short windows into longer ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import Windows, rfc3339

Key = tuple[Any, ...]
"""Id and version of a collection, a group as text (empty: the total), and start and end of a window in milliseconds,
which are both 0 for a global window.
"""

GROUP = 2
"""Place of the group in a key."""


def check_stored(stored: Iterable[Key], windows: Windows) -> None:
    """Refuse windows that cannot be combined: windows of one job that overlap, or that span several base periods.

    Args:
        stored: keys of the windows that one job counted.
        windows: windows to build from them.

    Raises:
        SpecError: for the first such window.
    """
    ends: dict[Key, int] = {}
    for *names, start, end in sorted(stored):
        if start == end:
            raise SpecError(
                "--window needs counts that were stored by window, got counts of a single window that holds all reports"
            )
        if end > windows.periods.end_of(start):
            raise SpecError(
                "--window must have base periods that consist of whole stored windows, got the stored "
                f"window {_span(start, end)}"
            )
        if start < ends.get(tuple(names), start):
            raise SpecError(
                "--window needs stored windows that do not overlap, got the stored window "
                f"{_span(start, end)}, which begins before another one ends"
            )
        ends[tuple(names)] = end


def _span(start: int, end: int) -> str:
    return f"{rfc3339(start)} to {rfc3339(end)}"


def regrouped(
    stored: Mapping[Key, list[dict[str, Any]]], whole: set[Key], windows: Windows, seen_until: int | None
) -> tuple[dict[Key, list[dict[str, Any]]], set[Key]]:
    """The rows of each longer window, and the keys of the complete ones, whose stored windows are all complete.

    Args:
        stored: rows of counts by window; missing windows had no reports.
        whole: keys of complete stored windows.
        windows: longer windows that contain the stored ones.
        seen_until: end of the last window that a stream has counted, in milliseconds: a longer window that ends later
            may be incomplete. None: there was no stream.
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
