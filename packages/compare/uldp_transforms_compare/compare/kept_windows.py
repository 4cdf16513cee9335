"""Stored counts of windows in a temporary file, so that a comparison takes the memory of a few windows."""

from __future__ import annotations

import functools
import os
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence

from uldp_transforms.jobs.reestimate.added_windows import added
from uldp_transforms.jobs.reestimate.regroup import Key
from uldp_transforms.jobs.reestimate.stored_counts import Row, StoredCounts
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.rows.samples.sample import Sample

KEPT = 64
"""Number of windows or groups that stay in memory for further pairs: all of a comparison of each pair of groups."""


def kept(stored: Iterable[StoredCounts]) -> StoredCounts:
    """Counts of all windows, of which only the keys are in memory.

    Args:
        stored: some windows at a time, each of them once.
    """
    windows, whole, strangers = _Windows(), set[Key](), 0
    for some in stored:
        for key, rows in some.windows.items():
            windows.keep(key, rows)
        whole |= some.whole
        strangers += some.strangers
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


class _Windows(Mapping[Key, Sequence[Row]]):
    """The rows of each window; of the last ones that were read, also in memory."""

    def __init__(self) -> None:
        self._file, self._places = tempfile.TemporaryFile(), dict[Key, int]()  # noqa: SIM115  # vanishes with this object
        self._read = functools.lru_cache(KEPT)(self._rows_at)

    def keep(self, key: Key, rows: Sequence[Row]) -> None:
        """Add the rows of a window."""
        self._places[key] = self._file.seek(0, os.SEEK_END)
        pickle.dump(rows, self._file, pickle.HIGHEST_PROTOCOL)

    def _rows_at(self, place: int) -> Sequence[Row]:
        self._file.seek(place)
        rows: Sequence[Row] = pickle.load(self._file)
        return rows

    def __getitem__(self, key: Key) -> Sequence[Row]:
        return self._read(self._places[key])

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
