"""The counted reports of one base period or shard, looked up by id, with the smallest row of each id.

Reports are rows of bytes, stored in the order in which their ids first arrived; a hash table with open addressing gives
the row of each id. Adding n rows takes time proportional to n for any number of stored rows; only when the table is
full is it rebuilt, twice as large.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from uldp_transforms.collector.period_counts import count_batches
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.messages.catalog import CollectionCatalog

HEAD = ID_BYTES + 8 + 2
"""Number of bytes of a row before the payload: id, event time, cohort."""

SEED = secrets.randbits(128)
"""Secret seed of this process, so that senders, who choose the ids, cannot choose ids that collide in a slot."""

_FIRST_SLOTS = 1 << 4
_MAX_FILLED = 0.5
_NONE = -1


class Changes(NamedTuple):
    """Effect of added rows.

    Attributes:
        removed: (n, R) uint8, rows that are no longer counted.
        added: (n, R) uint8, rows that are newly counted.
        duplicates: number of added rows minus the number of new ids.
    """

    removed: np.ndarray
    added: np.ndarray
    duplicates: int


class KnownReports:
    """The smallest row of each id.

    Args:
        width: R, size of a row in bytes; the first 16 bytes are the id.
        seed: 128 bits that determine the slots; the results of ``add`` do not depend on it.
    """

    def __init__(self, width: int, seed: int = SEED):
        self._rows = np.empty((0, width), np.uint8)
        self._size = 0
        self._slots = np.full(_FIRST_SLOTS, _NONE, np.int32)
        self._factors = np.frombuffer(hashlib.shake_256(seed.to_bytes(16, "little")).digest(40), "<u8")

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> np.ndarray:
        """The counted rows, (m, R) uint8, in the order in which their ids first arrived."""
        rows: np.ndarray = self._rows[: self._size].copy()
        return rows

    @property
    def num_bytes(self) -> int:
        """Memory use in bytes."""
        return self._rows.nbytes + self._slots.nbytes

    def add(self, new: np.ndarray) -> Changes:
        """Count the smallest row of each id, among the stored and the new rows.

        Args:
            new: (n, R) uint8.
        """
        best = _smallest_of_each_id(new)
        at = self._find(_ids(best))
        known = at != _NONE
        before, candidates = self._rows[at[known]], best[known]
        smaller = as_bytes(candidates) < as_bytes(before)
        self._rows[at[known][smaller]] = candidates[smaller]
        self._append(best[~known])
        changed = ~known
        changed[known] = smaller
        return Changes(before[smaller], best[changed], len(new) - int((~known).sum()))

    def stored(self, added: np.ndarray) -> bytes:
        """What state must keep of added rows, to be given to ``read`` later."""
        return added.tobytes()

    def read(self, block: bytes) -> None:
        """Add the rows of a stored block; blocks may come in any order."""
        self.add(np.frombuffer(block, np.uint8).reshape(-1, self._rows.shape[1]))

    def _find(self, ids: np.ndarray) -> np.ndarray:
        """The row number of each id; -1 for unknown ids."""
        found = np.full(len(ids), _NONE, np.int64)
        left, slots = np.arange(len(ids)), self._first_slots(ids)
        while len(left):
            rows = self._slots[slots]
            filled = rows != _NONE
            left, slots, rows = left[filled], slots[filled], rows[filled]
            same = (_ids(self._rows[rows, :ID_BYTES]) == ids[left]).all(axis=1)
            found[left[same]] = rows[same]
            left, slots = left[~same], self._next(slots[~same])
        return found

    def _append(self, rows: np.ndarray) -> None:
        """Append rows with distinct, unknown ids."""
        begin, self._size = self._size, self._size + len(rows)
        if self._size > len(self._rows):
            self._rows.resize((self._size + (self._size >> 2), self._rows.shape[1]), refcheck=False)
        self._rows[begin : self._size] = rows
        if self._size > _MAX_FILLED * len(self._slots):
            num_slots = len(self._slots)
            while self._size > _MAX_FILLED * num_slots:
                num_slots *= 2
            self._slots = np.full(num_slots, _NONE, np.int32)
            begin = 0
        for first in range(begin, self._size, _AT_ONCE):
            self._put(np.arange(first, min(first + _AT_ONCE, self._size), dtype=np.int32))

    def _put(self, numbers: np.ndarray) -> None:
        """Put each of these rows into the first free slot, beginning at its own."""
        slots = self._first_slots(_ids(self._rows[numbers, :ID_BYTES]))
        while len(numbers):
            free = self._slots[slots] == _NONE
            self._slots[slots[free]] = numbers[free]
            homeless = self._slots[slots] != numbers  # if several rows claim a slot, one of them gets it
            numbers, slots = numbers[homeless], self._next(slots[homeless])

    def _first_slots(self, ids: np.ndarray) -> np.ndarray:
        """Sums of products with the four 32-bit words of an id, then mixed.

        Any two different ids have the same sum for at most 2^-32 of all factors (Dietzfelbinger 1996); so nobody can
        find many ids for one slot without knowing the factors.
        """
        mixed = np.full(len(ids), self._factors[0])
        for half, factor in zip(ids.view("<u4").T, self._factors[1:]):
            mixed += half * factor
        mixed ^= mixed >> np.uint64(32)
        mixed *= self._factors[0] | np.uint64(1)
        slots: np.ndarray = (mixed >> np.uint64(65 - len(self._slots).bit_length())).astype(np.int64)
        return slots

    def _next(self, slots: np.ndarray) -> np.ndarray:
        following: np.ndarray = (slots + 1) & (len(self._slots) - 1)
        return following


_AT_ONCE = 1 << 16


def to_rows(batch: ReportBatch) -> np.ndarray:
    """Convert reports to rows of bytes, (n, 26 + W) uint8: id, event time, cohort, payload."""
    times = batch.event_times.astype("<i8")[:, np.newaxis].view(np.uint8)
    cohorts = batch.cohorts.astype("<u2")[:, np.newaxis].view(np.uint8)
    return np.concatenate([batch.report_ids, times, cohorts, batch.payloads], axis=1)


def as_bytes(rows: np.ndarray) -> np.ndarray:
    """Convert (n, R) uint8 to (n,) strings of R bytes, which compare lexicographically."""
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}")[:, 0]


def _ids(rows: np.ndarray) -> np.ndarray:
    """The ids of rows, as (n, 2) uint64."""
    return np.ascontiguousarray(rows[:, :ID_BYTES]).view("<u8")


def _smallest_of_each_id(rows: np.ndarray) -> np.ndarray:
    ordered = rows[np.argsort(as_bytes(rows))]
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = (ordered[1:, :ID_BYTES] != ordered[:-1, :ID_BYTES]).any(axis=1)
    return ordered[first]


def counts_of_changes(
    catalog: CollectionCatalog,
    fingerprint: bytes,
    changes: Changes,
    bit_patterns: bool = False,
    by: Sequence[str] | None = None,
) -> dict[bytes, CohortCounts]:
    """Counts of the added reports minus those of the removed ones, of the collection and of each group.

    Args:
        catalog: catalog of the job.
        fingerprint: of the collection.
        changes: rows of one base period.
        bit_patterns, by: as for ``count_batches``.
    """
    sums: dict[bytes, CohortCounts] = {}
    for rows, is_added in ((changes.added, True), (changes.removed, False)):
        batches = [_as_batch(fingerprint, rows)] if len(rows) else []
        for (owner, _), counts in count_batches(catalog, batches, None, bit_patterns, by):
            change = counts if is_added else -counts
            sums[owner] = sums[owner] + change if owner in sums else change
    return sums


def _as_batch(fingerprint: bytes, rows: np.ndarray) -> ReportBatch:
    """Rows of ``to_rows`` as reports without ids; all are in one base period, so times do not matter."""
    return ReportBatch(
        fingerprint=fingerprint,
        cohorts=np.ascontiguousarray(rows[:, HEAD - 2 : HEAD]).view("<u2")[:, 0],
        payloads=np.ascontiguousarray(rows[:, HEAD:]),
        event_times=np.zeros(len(rows), dtype=np.int64),
        report_ids=np.zeros((0, ID_BYTES), dtype=np.uint8),
    )
