"""Stored windows added up: one sample of a collection or question, or of one of its groups, over several windows."""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from uldp_transforms import JobSpec
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key
from uldp_transforms.jobs.reestimate.stored_counts import Row, StoredCounts, counts_of, simulated_of
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.rows.samples.sample import Owner, Sample
from uldp_transforms.rows.windowed_estimate import ON_TIME
from uldp_transforms.windows import rfc3339

_PERIOD = "whole period"
"""What a total and its groups have in common, although their first and last windows can differ."""


class Overlap(SpecError):
    """Windows that overlap have no sum."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddedWindows:
    """The windows of one owner, added up.

    Attributes:
        sample: of the complete windows; if there are none, of all of them, and its numbers are withheld.
        number: number of complete windows.
        partial: number of windows that are left out, or whose numbers are withheld.
    """

    sample: Sample
    number: int
    partial: int


def sums_of(spec: JobSpec, stored: StoredCounts) -> Iterator[AddedWindows]:
    """The sums of each collection that has windows, and of its groups, in the order of their names; then those of
    questions: of all versions of each question and group that has complete windows.

    Raises:
        Overlap: if windows of one collection overlap.
    """
    for _, keys in itertools.groupby(sorted(stored.windows), key=group_of):
        first, *others = keys
        named = spec.catalog[bytes.fromhex(stored.windows[first][0]["fingerprint"])]
        yield added(stored, [first, *others], named)
    for question in spec.questions:
        names = {(one.id, one.version) for one in question.pooled}
        of_question = sorted((key for key in stored.windows if key[:GROUP] in names), key=operator.itemgetter(GROUP))
        for _, keys in itertools.groupby(of_question, key=operator.itemgetter(GROUP)):
            found = added(stored, keys, question)
            if found.number:
                yield found


def added(stored: StoredCounts, keys: Iterable[Key], named: Collection | VersionedQuestion) -> AddedWindows:
    """Add up windows: each version of a question has its own.

    Args:
        stored: counts of all windows.
        keys: of the windows to add, which are of one group, or totals.
        named: the collection or question.

    Raises:
        Overlap: if windows of one collection overlap.
    """
    of_owner = sorted(keys)
    for _, own in itertools.groupby(of_owner, key=group_of):
        check_apart([key[-2:] for key in own], named.id)
    whole = [key for key in of_owner if key in stored.whole]
    rows = [row for key in whole or of_owner for row in stored.windows[key]]
    sample = Sample(
        owner=Owner(named=named, group=rows[0]["dimensions"]),
        place=_place_of(rows),
        counts=counts_of(rows),
        partial=not whole,
        simulated=simulated_of([row["simulated"] for row in rows]),
        window=_PERIOD,
    )
    return AddedWindows(sample=sample, number=_number(whole), partial=_number(set(of_owner).difference(whole)))


def group_of(key: Key) -> Key:
    """The collection and group of a window."""
    return key[: GROUP + 1]


def check_apart(spans: Iterable[tuple[int, int]], name: str) -> None:
    """Refuse windows that overlap.

    Args:
        spans: start and end of each window, in order.
        name: of the collection or question.

    Raises:
        Overlap: for the first such window.
    """
    for before, after in itertools.pairwise(spans):
        if after[0] < before[1]:
            raise Overlap(
                f"DIR must have windows that do not overlap, because reports would count twice, got overlapping "
                f"windows of {name!r}"
            )


def _number(keys: Iterable[Key]) -> int:
    return len({key[-2:] for key in keys})


def _place_of(rows: Sequence[Row]) -> dict[str, Any]:
    """The fields that identify the period from the first window to the last."""
    last = max(rows, key=lambda row: (row["run"] or "", row["window_start"] or 0))
    starts, ends = ([row[name] for row in rows] for name in ("window_start", "window_end"))
    return {
        "window_start": None if None in starts else rfc3339(min(starts)),
        "window_end": None if None in ends else rfc3339(max(ends)),
        "pane_index": 0,
        "pane_timing": ON_TIME,
        "run": last["run"],
    }
