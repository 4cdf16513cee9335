"""The ids of the counted reports of one base period or shard, as fingerprints of 64 bits in sorted runs.

A fingerprint is a keyed hash: two different ids have the same one with probability exactly 2**-64, for anybody who does
not know the secret. A report whose fingerprint is known is a copy, so of n ids each new one is lost with probability
n / 2**64 at most (``lost_reports``). Eight bytes are stored per id, instead of the whole report.
"""

from __future__ import annotations

import hashlib

import numpy as np

from uldp_transforms.collector.known_reports import Changes
from uldp_transforms.ldp.reports import ID_BYTES

SECRET_BYTES = 16

_RATIO = 4  # a run is merged with the next one unless it is more than so many times as long
_MERGED_AT_ONCE = 1 << 16


def lost_reports(num_ids: float, num_parts: int = 1, bits: int = 64) -> float:
    """Largest expected number of reports that are taken for copies although their ids are new.

    Args:
        num_ids: different ids of a base period, evenly spread over its shards.
        num_parts: number of shards.
        bits: size of a fingerprint.
    """
    return num_ids * max(num_ids / num_parts - 1, 0) / 2 / 2.0**bits


class KnownIds:
    """A set of ids. Adding is amortised over merges, which cost about as much as sorting the new ids.

    Args:
        secret: 16 random bytes that senders do not know; ids are chosen by senders.
    """

    def __init__(self, secret: bytes):
        keys = np.frombuffer(hashlib.shake_256(secret).digest(2 * 5 * 8), "<u8").astype(np.uint64)
        self._keys = keys.reshape(2, 5)
        self._runs: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @property
    def num_bytes(self) -> int:
        """Memory use in bytes."""
        return sum(run.nbytes for run in self._runs)

    def add(self, rows: np.ndarray) -> Changes:
        """Count the first row of each new id.

        Args:
            rows: (n, R) uint8, the first 16 bytes of which are the id.
        """
        fingerprints, first = np.unique(self.fingerprints(rows[:, :ID_BYTES]), return_index=True)
        new = ~self._is_known(fingerprints)
        self._insert(fingerprints[new])
        added = rows[np.sort(first[new])]
        return Changes(rows[:0], added, len(rows) - len(added))

    def stored(self, added: np.ndarray) -> bytes:
        """What state must keep of added rows, to be given to ``read`` later."""
        return self.fingerprints(added[:, :ID_BYTES]).astype("<u8").tobytes()

    def read(self, block: bytes) -> None:
        """Add what is stored, in blocks of any order."""
        fingerprints = np.unique(np.frombuffer(block, "<u8").astype(np.uint64))
        self._insert(fingerprints[~self._is_known(fingerprints)])

    def fingerprints(self, ids: np.ndarray) -> np.ndarray:
        """Fingerprints (n,) uint64 of ids (n, 16) uint8.

        Each half is a sum of products with the four 32-bit words of an id, modulo 2**64, of which the upper 32 bits
        count: any two different ids have the same half for exactly 2**-32 of all keys (Dietzfelbinger 1996).
        """
        words = np.ascontiguousarray(ids).view("<u4").astype(np.uint64)
        halves = []
        for keys in self._keys:
            total = np.full(len(words), keys[0])
            for place, key in enumerate(keys[1:]):
                total += words[:, place] * key
            halves.append(total >> np.uint64(32))
        fingerprints: np.ndarray = halves[0] << np.uint64(32) | halves[1]
        return fingerprints

    def _is_known(self, fingerprints: np.ndarray) -> np.ndarray:
        """(n,) bool, for sorted fingerprints (n,)."""
        known = np.zeros(len(fingerprints), dtype=bool)
        for run in self._runs:
            places = np.searchsorted(run, fingerprints)
            known |= run[np.minimum(places, len(run) - 1)] == fingerprints
        return known

    def _insert(self, fingerprints: np.ndarray) -> None:
        """Add sorted, unknown fingerprints."""
        if not len(fingerprints):
            return
        self._runs.append(fingerprints.copy())
        while len(self._runs) > 1 and len(self._runs[-2]) <= _RATIO * len(self._runs[-1]):
            shorter, longer = sorted((self._runs.pop(), self._runs.pop()), key=len)
            self._runs.append(merge_into(longer, shorter))


def merge_into(longer: np.ndarray, shorter: np.ndarray) -> np.ndarray:
    """Merge two sorted arrays in the memory of the first one, which must own it; returns the first one.

    It is filled from its end, piece by piece, so that little further memory is needed.
    """
    end, rest = len(longer), len(shorter)
    longer.resize(end + rest, refcheck=False)
    while rest:
        begin = max(0, end - _MERGED_AT_ONCE)
        before = int(np.searchsorted(shorter[:rest], longer[begin])) if begin else 0
        piece = np.concatenate((longer[begin:end], shorter[before:rest]))
        piece.sort(kind="stable")
        longer[begin + before : end + rest] = piece
        end, rest = begin, before
    return longer
