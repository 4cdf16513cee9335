"""Batches of perturbed reports, stored as columns. A single report is a batch of one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.errors import SpecError

ID_BYTES = 16
"""Number of bytes of a report id, which the client draws at random once and repeats in every retry of the report."""


@dataclasses.dataclass(frozen=True, eq=False)
class ReportBatch:
    """n reports of one collection.

    Examples:
        >>> from uldp_transforms.ldp import Collection, ReportBatch
        >>> collection = Collection.from_json("C.json")
        >>> batch = collection.perturb(["flu", "cold", "flu"])
        >>> both = ReportBatch.concatenate([batch, batch[:1]])
        >>> len(both), both.payloads.dtype.name, both.report_ids.shape
        (4, 'uint8', (4, 16))

    Attributes:
        fingerprint: 32 bytes that identify the collection of the reports.
        cohorts: (n,) uint16.
        payloads: (n, W) uint8, encoded reports of the mechanism.
        event_times: (n,) int64, milliseconds since 1970 UTC.
        report_ids: (n, 16) uint8; (0, 16) if the batch carries no ids.
        seeded: True if any report was drawn from another source than the operating system's secure one. Such reports
            are for simulations and do not protect anybody.
        times: number of equal reports that each report stands for, if they were counted before. ``len`` is n.
    """

    fingerprint: bytes
    cohorts: np.ndarray
    payloads: np.ndarray
    event_times: np.ndarray
    report_ids: np.ndarray
    seeded: bool = False
    times: int = 1

    def __post_init__(self) -> None:
        n = len(self.cohorts)
        columns = {
            "cohorts": (self.cohorts, np.uint16, (n,)),
            "payloads": (self.payloads, np.uint8, (n, self.payloads.shape[-1])),
            "event_times": (self.event_times, np.int64, (n,)),
            "report_ids": (self.report_ids, np.uint8, (len(self.report_ids) and n, ID_BYTES)),
        }
        for name, (array, dtype, shape) in columns.items():
            if array.dtype != dtype or array.shape != shape:
                raise SpecError(
                    f"ReportBatch.{name} must be {np.dtype(dtype)} {shape}, got {array.dtype} {array.shape}"
                )

    def __len__(self) -> int:
        return len(self.cohorts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReportBatch):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in ("fingerprint", "seeded", "times")) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays: equal by content, not hashable

    def __getitem__(self, rows: slice | np.ndarray) -> ReportBatch:
        """The reports selected by a slice, indices or a mask."""
        ids = self.report_ids[rows] if len(self.report_ids) else self.report_ids
        return dataclasses.replace(
            self,
            cohorts=self.cohorts[rows],
            payloads=self.payloads[rows],
            event_times=self.event_times[rows],
            report_ids=ids,
        )

    @property
    def num_bytes(self) -> int:
        """Number of bytes of the columns in memory."""
        return sum(column.nbytes for column in (self.cohorts, self.payloads, self.event_times, self.report_ids))

    def split(self, fingerprints: Sequence[bytes], sizes: np.ndarray) -> list[ReportBatch]:
        """Batches of several collections, by whose order these reports are sorted.

        It takes only a microsecond or two per batch, because the columns were checked when this batch was made.

        Args:
            fingerprints: fingerprints of B collections.
            sizes: (B,) int64, number of reports of each collection; their sum is n.
        """
        cohorts, payloads, times, ids = (getattr(self, name) for name in _COLUMNS)
        with_ids, stop, batches = len(ids) > 0, 0, []
        for fingerprint, size in zip(fingerprints, sizes.tolist()):
            start, stop = stop, stop + size
            own_ids = ids[start:stop] if with_ids else ids
            columns = cohorts[start:stop], payloads[start:stop], times[start:stop], own_ids
            batches.append(ReportBatch.of_columns(fingerprint, *columns, self.seeded, self.times))
        return batches

    @classmethod
    def of_columns(
        cls,
        fingerprint: bytes,
        cohorts: np.ndarray,
        payloads: np.ndarray,
        event_times: np.ndarray,
        report_ids: np.ndarray,
        seeded: bool = False,
        times: int = 1,
    ) -> ReportBatch:
        """A batch of columns that are known to fit: the constructor without its checks, which cost microseconds."""
        batch = object.__new__(cls)
        fields = batch.__dict__  # the class is frozen
        fields["fingerprint"], fields["seeded"], fields["times"] = fingerprint, seeded, times
        fields["cohorts"], fields["payloads"] = cohorts, payloads
        fields["event_times"], fields["report_ids"] = event_times, report_ids
        return batch

    @classmethod
    def concatenate(cls, batches: list[ReportBatch]) -> ReportBatch:
        """All reports of batches of one collection, in order.

        Raises:
            SpecError: if the list is empty, the batches belong to different collections, or their reports stand for
            different numbers of reports.
        """
        if len({batch.fingerprint for batch in batches}) != 1:
            raise SpecError("ReportBatch.concatenate needs batches of exactly one collection")
        if len({batch.times for batch in batches}) != 1:
            raise SpecError("ReportBatch.concatenate needs batches with the same ReportBatch.times")
        if len(batches) == 1:
            return batches[0]
        have_ids = all(len(batch.report_ids) == len(batch) for batch in batches)
        id_columns = [b.report_ids for b in batches] if have_ids else [np.zeros((0, ID_BYTES), np.uint8)]
        return cls(
            fingerprint=batches[0].fingerprint,
            cohorts=np.concatenate([b.cohorts for b in batches]),
            payloads=np.concatenate([b.payloads for b in batches]),
            event_times=np.concatenate([b.event_times for b in batches]),
            report_ids=np.concatenate(id_columns),
            seeded=any(b.seeded for b in batches),
            times=batches[0].times,
        )


_COLUMNS = ("cohorts", "payloads", "event_times", "report_ids")
