"""Stored counts of windows in a temporary file, so that a comparison takes the memory of a few windows."""

from __future__ import annotations

import functools
import os
import pickle
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.jobs.reestimate.added_windows import added
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key
from uldp_transforms.jobs.reestimate.stored_counts import (
    Panes,
    Row,
    StoredCounts,
    check_stored_by,
    checked,
    keep_last,
    key_of,
    read_rows,
    rows_to_add,
    total_of,
)
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.rows.samples.sample import Sample

KEPT = 64
"""Number of windows or groups that stay in memory for further pairs: all of a comparison of each pair of groups."""


def kept(
    job: tuple[Sequence[str], Sequence[RunRecord]], known: Mapping[str, Collection], by: tuple[str, ...] | None
) -> StoredCounts:
    """``stored_counts`` of one job, of which only the keys are in memory; files are read once.

    Args:
        job: its files of counts, and the records of its runs.
        known, by: as for ``stored_counts``.

    Raises:
        SpecError, OSError: as ``stored_counts``.
    """
    files, records = job
    read, strangers = _Kept(), 0
    places: dict[Key, array[int]] = defaultdict(lambda: array("q"))
    for name, row in read_rows(files):
        if row["fingerprint"] not in known:
            strangers += 1
            continue
        key = key_of(checked(name, row, known[row["fingerprint"]]))
        if by or not key[GROUP]:
            places[total_of(key)].append(read.add(row))
    windows, whole = _Windows(), set[Key]()
    for of_window in places.values():
        latest: Panes = defaultdict(dict)
        for place in of_window:
            keep_last(latest, read.at(place))
        found, complete = rows_to_add([(latest, records)], by)
        windows.keep(found)
        whole |= complete
    if by:
        check_stored_by(any(key[GROUP] for key in windows), by)
    return StoredCounts(windows=windows, whole=whole, strangers=strangers)


def kept_sample(stored: StoredCounts, keys: Sequence[Key], named: Collection | VersionedQuestion) -> Sample:
    """``added`` windows, whose counts are read again whenever they are asked for; arguments and errors as there."""
    sample = added(stored, keys, named).sample
    return Sample(
        owner=sample.owner,
        place=sample.place,
        counts=_Counts(stored, keys, named, tuple(sample.counts)),
        partial=sample.partial,
        simulated=sample.simulated,
        window=sample.window,
    )


class _Kept:
    """Objects in a temporary file, which vanishes with this one."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as this object

    def add(self, one: Any) -> int:
        """Write an object; returns its place."""
        place = self._file.seek(0, os.SEEK_END)
        pickle.dump(one, self._file, pickle.HIGHEST_PROTOCOL)
        return place

    def at(self, place: int) -> Any:
        """Read the object at a place."""
        self._file.seek(place)
        return pickle.load(self._file)


class _Windows(Mapping[Key, Sequence[Row]]):
    """The rows of each window; of the last ones that were read, also in memory."""

    def __init__(self) -> None:
        self._rows, self._places = _Kept(), dict[Key, int]()
        self._read = functools.lru_cache(KEPT)(self._rows.at)

    def keep(self, rows_of: Mapping[Key, Sequence[Row]]) -> None:
        """Add the rows of some windows."""
        for key, rows in rows_of.items():
            self._places[key] = self._rows.add(rows)

    def __getitem__(self, key: Key) -> Sequence[Row]:
        rows: Sequence[Row] = self._read(self._places[key])
        return rows

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class _Counts(Mapping[bytes, CohortCounts]):
    """The counts of a sample by fingerprint, added up when they are asked for."""

    __slots__ = ("_fingerprints", "_keys", "_named", "_stored")

    def __init__(
        self,
        stored: StoredCounts,
        keys: Sequence[Key],
        named: Collection | VersionedQuestion,
        fingerprints: tuple[bytes, ...],
    ) -> None:
        self._stored, self._keys, self._named, self._fingerprints = stored, keys, named, fingerprints

    def __getitem__(self, fingerprint: bytes) -> CohortCounts:
        return added(self._stored, self._keys, self._named).sample.counts[fingerprint]

    def __contains__(self, fingerprint: object) -> bool:
        return fingerprint in self._fingerprints

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._fingerprints)

    def __len__(self) -> int:
        return len(self._fingerprints)
