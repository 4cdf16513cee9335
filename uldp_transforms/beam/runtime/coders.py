"""Coders between workers: of counts and reports, as versioned bytes instead of pickled arrays, and of each kind of row,
so that Beam's sinks, SQL and data frames accept it.
"""

from __future__ import annotations

import dataclasses
import struct

import numpy as np
from apache_beam import coders, typehints
from apache_beam.utils.timestamp import Timestamp

from uldp_transforms.collector.count_bytes import decode_counts, encode_counts
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.messages.group_keys import FINGERPRINT_BYTES, split_key
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.rows.row_types import (
    DiscoveredValue,
    EstimatedValue,
    LedgerRow,
    RejectedReport,
    WindowCounts,
    WindowedEstimate,
    WindowHealth,
)

_BATCH_VERSION = 1


class CohortCountsCoder(coders.Coder):
    """Coder of counts, see ``collector.count_bytes``."""

    def encode(self, value: CohortCounts | None) -> bytes:
        return encode_counts(value)

    def decode(self, encoded: bytes) -> CohortCounts | None:
        return decode_counts(encoded)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return CohortCounts


@dataclasses.dataclass(frozen=True, slots=True)
class StoredSum:
    """A sum of counts as bytes until it is read or added to, since an engine may hold many at once.

    A worker holds up to 100,000 sums of a bundle, and Beam's local engine those of all windows of a job over files; as
    arrays they take up to 8 times as much.

    Attributes:
        encoded: as ``encode_counts`` returns them, not empty.
    """

    encoded: bytes

    @classmethod
    def of(cls, counts: CohortCounts) -> StoredSum:
        """The sum of one."""
        return cls(encode_counts(counts))

    def snapshot(self) -> CohortCounts:
        """The counts; raises ValueError for bytes of another version."""
        counts = decode_counts(self.encoded)
        assert counts is not None, "RunningSumCoder.decode"
        return counts


Accumulator = RunningSum | StoredSum
"""A sum of counts: one that grows, or one as it was stored."""


class RunningSumCoder(coders.Coder):
    """Coder of a ``RunningSum``: the bytes of the counts so far, as ``CohortCountsCoder`` has them."""

    def encode(self, value: Accumulator | None) -> bytes:
        if isinstance(value, StoredSum):
            return value.encoded
        return encode_counts(None if value is None else value.snapshot())

    def decode(self, encoded: bytes) -> StoredSum | None:
        return StoredSum(encoded) if encoded else None

    def is_deterministic(self) -> bool:
        return True


class ReportBatchCoder(coders.Coder):
    """Coder of a report batch: version, flags (1: seeded, 2: repeated), payload width (uint32), fingerprint, how often
    each report counts (uint32, if repeated), and the packed wire message."""

    def encode(self, value: ReportBatch) -> bytes:
        is_repeated = value.times != 1
        head = struct.pack("<BBI", _BATCH_VERSION, value.seeded | is_repeated << 1, value.payloads.shape[1])
        times = struct.pack("<I", value.times) if is_repeated else b""
        return head + value.fingerprint + times + wire.encode_batch(value)

    def decode(self, encoded: bytes) -> ReportBatch:
        version, flags, width = struct.unpack_from("<BBI", encoded)
        if version != _BATCH_VERSION:
            raise ValueError(f"ReportBatchCoder reads version {_BATCH_VERSION}, got version {version}")
        is_repeated = flags & 2
        _, (cohorts, times, ids, payloads), _, _ = wire.split_batch(encoded, 6 + 32 + (4 if is_repeated else 0))
        return ReportBatch(
            fingerprint=encoded[6 : 6 + 32],
            cohorts=np.frombuffer(cohorts, dtype="<u2").astype(np.uint16),
            payloads=np.frombuffer(payloads, dtype=np.uint8).reshape(-1, width).copy(),
            event_times=np.frombuffer(times, dtype="<i8").astype(np.int64),
            report_ids=np.frombuffer(ids, dtype=np.uint8).reshape(-1, ID_BYTES).copy(),
            seeded=bool(flags & 1),
            times=struct.unpack_from("<I", encoded, 6 + 32)[0] if is_repeated else 1,
        )

    def estimate_size(self, value: ReportBatch) -> int:
        """About the encoded size; engines ask for it often, because batches are few."""
        return value.num_bytes

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return ReportBatch


class MixedReportsCoder(coders.Coder):
    """Coder of the reports of several collections: version, number of collections (uint32), their fingerprints and
    numbers of reports (uint32), and the bytes of ``ReportBatchCoder`` for all reports."""

    def encode(self, value: MixedReports) -> bytes:
        head = struct.pack("<BI", _BATCH_VERSION, len(value.owners))
        sizes = value.sizes.astype("<u4").tobytes()
        reports = dataclasses.replace(value.reports, fingerprint=bytes(FINGERPRINT_BYTES))
        fingerprints = bytes(value.table[value.owners])
        return head + fingerprints + sizes + _BATCH_CODER.encode(reports)

    def decode(self, encoded: bytes) -> MixedReports:
        version, number = struct.unpack_from("<BI", encoded)
        if version != _BATCH_VERSION:
            raise ValueError(f"MixedReportsCoder reads version {_BATCH_VERSION}, got version {version}")
        sizes_at = 5 + number * FINGERPRINT_BYTES
        table = np.frombuffer(encoded[5:sizes_at], dtype=np.uint8).reshape(number, FINGERPRINT_BYTES)
        sizes = np.frombuffer(encoded, dtype="<u4", count=number, offset=sizes_at).astype(np.int64)
        return MixedReports(table, np.arange(number), sizes, _BATCH_CODER.decode(encoded[sizes_at + 4 * number :]))

    def estimate_size(self, value: MixedReports) -> int:
        return value.reports.num_bytes + len(value.owners) * (FINGERPRINT_BYTES + 4)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return MixedReports


_BATCH_CODER = ReportBatchCoder()


def key_of_sum(owner: bytes, start: int | None) -> bytes:
    """Key of the sum of counts for one collection or group and one base period or window.

    Args:
        owner: fingerprint of the collection, or ``owner_of_group``.
        start: start of the base period or window, in milliseconds; None: one sum for all time.
    """
    return owner if start is None else owner + start.to_bytes(8, "big", signed=True)


def owner_and_start(key: bytes) -> tuple[bytes, int | None]:
    """Reverse ``key_of_sum``."""
    owner, start = split_key(key)
    return owner, int.from_bytes(start, "big", signed=True) if start else None


KEYED_BYTES = typehints.Tuple[bytes, bytes]
"""Type hint of pairs of a key and encoded counts."""

KEYED_COUNTS = typehints.Tuple[bytes, CohortCounts]
"""Type hint of pairs of the key of a collection or group (or of a sum) and counts."""

coders.registry.register_coder(CohortCounts, CohortCountsCoder)
coders.registry.register_coder(ReportBatch, ReportBatchCoder)
coders.registry.register_coder(MixedReports, MixedReportsCoder)


ROWS = (DiscoveredValue, EstimatedValue, LedgerRow, RejectedReport, WindowCounts, WindowHealth, WindowedEstimate)

for _row in ROWS:
    coders.registry.register_coder(_row, coders.RowCoder)


def timestamp_of(text: str) -> Timestamp:
    """Convert a time in a row to Beam's ``Timestamp``."""
    return Timestamp.from_rfc3339(text)
