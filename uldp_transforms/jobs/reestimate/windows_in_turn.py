"""Stored counts of one window after the other, so that a period of any length is added up in the memory of a window."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key
from uldp_transforms.jobs.reestimate.stored_counts import (
    Panes,
    StoredCounts,
    check_stored_by,
    checked,
    keep_last,
    key_of,
    read_rows,
    rows_to_add,
    total_of,
)
from uldp_transforms.ldp import Collection
from uldp_transforms.rows.row_types import COUNTS_SCHEMA

_NAMES = ("collection_id", "collection_version", "fingerprint", "window_start", "window_end", "group")
_LEAN = COUNTS_SCHEMA | {"fields": [field for field in COUNTS_SCHEMA["fields"] if field["name"] in _NAMES]}


def windows_in_turn(
    jobs: Iterable[tuple[Sequence[str], Sequence[RunRecord]]],
    known: Mapping[str, Collection],
    by: tuple[str, ...] | None = None,
) -> Iterator[StoredCounts]:
    """The counts of each window of each collection, once its last row is read; all together are ``stored_counts``.

    Files are read twice, first without counts, to find the last row of each window. In memory are a place for each
    window, and the counts of windows of which some, but not all rows were read.

    Args:
        jobs, known, by: as for ``stored_counts``.

    Raises:
        SpecError, OSError: as ``stored_counts``.
    """
    every = list(jobs)
    last: dict[Key, int] = {}
    for number, (_, row) in enumerate(item for files, _ in every for item in read_rows(files, _LEAN)):
        if row["fingerprint"] in known:
            last[total_of(key_of(row))] = number
    begun: dict[Key, list[Panes]] = {}
    counter, has_groups = itertools.count(), False
    for place, (files, _) in enumerate(every):
        for (name, row), number in zip(read_rows(files), counter):  # in this order none is lost at the end
            if row["fingerprint"] not in known:
                continue
            window = total_of(key_of(row))
            of_jobs = begun.setdefault(window, [defaultdict(dict) for _ in every])
            keep_last(of_jobs[place], checked(name, row, known[row["fingerprint"]]))
            if last[window] == number:
                panes = zip(begun.pop(window), (records for _, records in every))
                windows, whole = rows_to_add(panes, by)
                has_groups |= any(key[GROUP] for key in windows)
                yield StoredCounts(windows=windows, whole=whole, strangers=0)
    if by:
        check_stored_by(has_groups, by)
