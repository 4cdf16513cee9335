"""Stored windows added up: one sample of a collection or question, or of one of its groups, over several windows."""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from uldp_transforms import JobSpec
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key
from uldp_transforms.jobs.reestimate.stored_counts import Row, StoredCounts, counts_of, simulated_of
from uldp_transforms.ldp import CohortCounts, Collection
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


class _Sum:
    """Rows of windows, added up one after the other."""

    def __init__(self) -> None:
        self.counts: dict[bytes, CohortCounts] = {}
        self.spans: set[tuple[int, int]] = set()
        self.dimensions: Any = None
        self.simulated: set[bool | None] = set()
        self._run = ""
        self._start: int | None = None
        self._end: int | None = None

    def add(self, span: tuple[int, int], rows: Iterable[Row]) -> None:
        """Add the rows of one window."""
        for row in rows:
            for fingerprint, counts in counts_of([row]).items():
                known = self.counts.get(fingerprint)
                self.counts[fingerprint] = counts if known is None else known + counts
            start, end = row["window_start"], row["window_end"]
            if not self.spans:
                self.dimensions, self._start, self._end = row["dimensions"], start, end
            self._start = None if None in (start, self._start) else min(start, self._start)
            self._end = None if None in (end, self._end) else max(end, self._end)
            self._run = max(self._run, row["run"] or "")
            self.simulated.add(row["simulated"])
            self.spans.add(span)

    @property
    def place(self) -> dict[str, Any]:
        """The fields that identify the period from the first window to the last."""
        return {
            "window_start": None if self._start is None else rfc3339(self._start),
            "window_end": None if self._end is None else rfc3339(self._end),
            "pane_index": 0,
            "pane_timing": ON_TIME,
            "run": self._run or None,
        }


class _Sums:
    """The windows of one owner: of the complete ones, and of all others."""

    def __init__(self) -> None:
        self.whole, self.cut = _Sum(), _Sum()

    def add(self, key: Key, rows: Iterable[Row], is_whole: bool) -> None:
        """Add the rows of one window."""
        (self.whole if is_whole else self.cut).add(key[-2:], rows)

    def of(self, named: Collection | VersionedQuestion) -> AddedWindows:
        """The sum for the collection or question that has these windows."""
        found = self.whole if self.whole.spans else self.cut
        sample = Sample(
            owner=Owner(named=named, group=found.dimensions),
            place=found.place,
            counts=found.counts,
            partial=found is self.cut,
            simulated=simulated_of(list(found.simulated)),
            window=_PERIOD,
        )
        return AddedWindows(sample=sample, number=len(self.whole.spans), partial=len(self.cut.spans))


def sums_of(spec: JobSpec, stored: Iterable[StoredCounts]) -> Iterator[AddedWindows]:
    """The sums of each collection that has windows, and of its groups, in the order of their names; then those of
    questions: of all versions of each question and group that has complete windows.

    Args:
        spec: the collections and questions.
        stored: counts of all windows, some windows at a time.

    Raises:
        Overlap: if windows of one collection overlap.
    """
    names = [{(one.id, one.version) for one in question.pooled} for question in spec.questions]
    of_collections: dict[Key, _Sums] = defaultdict(_Sums)
    of_questions: list[dict[str, _Sums]] = [defaultdict(_Sums) for _ in names]
    for some in stored:
        for key, rows in some.windows.items():
            owners = [of_collections[group_of(key)]]
            owners += [sums[key[GROUP]] for own, sums in zip(names, of_questions) if key[:GROUP] in own]
            for sums in owners:
                sums.add(key, rows, key in some.whole)
    catalog = {(one.id, one.version): one for one in spec.collections}
    for key, sums in sorted(of_collections.items(), key=operator.itemgetter(0)):
        named = catalog[key[:GROUP]]
        check_apart(sorted(sums.whole.spans | sums.cut.spans), named.id)
        yield sums.of(named)
    for question, groups in zip(spec.questions, of_questions):
        yield from (sums.of(question) for _, sums in sorted(groups.items()) if sums.whole.spans)


def added(stored: StoredCounts, keys: Iterable[Key], named: Collection | VersionedQuestion) -> AddedWindows:
    """Add up windows: each version of a question has its own.

    Args:
        stored: counts of all windows.
        keys: of the windows to add, which are of one group, or totals.
        named: the collection or question.

    Raises:
        Overlap: if windows of one collection overlap.
    """
    of_owner, sums = sorted(keys), _Sums()
    for _, own in itertools.groupby(of_owner, key=group_of):
        check_apart([key[-2:] for key in own], named.id)
    for key in of_owner:
        sums.add(key, stored.windows[key], key in stored.whole)
    return sums.of(named)


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
