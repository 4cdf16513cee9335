"""Reports of several collections in shared columns, so that a bundle of many collections costs few array operations.
No Beam.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.group_keys import FINGERPRINT_BYTES

_ONLY = np.zeros(1, dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class MixedReports:
    """n >= 1 reports of R collections with payloads of one size, sorted by collection.

    Attributes:
        table: (N, 32) uint8, fingerprints, for instance ``CollectionCatalog.table``.
        owners: (R,) int64, the place of each collection in the table, all different.
        sizes: (R,) int64, positive number of reports of each collection; their sum is n.
        reports: the columns of all n reports; its own fingerprint is not used.
    """

    table: np.ndarray
    owners: np.ndarray
    sizes: np.ndarray
    reports: ReportBatch

    @classmethod
    def of(cls, batch: ReportBatch) -> MixedReports:
        """A batch of one collection, with at least one report."""
        table = np.frombuffer(batch.fingerprint, dtype=np.uint8).reshape(1, FINGERPRINT_BYTES)
        return cls(table, _ONLY, np.array([len(batch)]), batch)

    def __len__(self) -> int:
        return len(self.reports)

    def times(self, number: int) -> MixedReports:
        """The same reports, each of which stands for this number of reports."""
        return dataclasses.replace(self, reports=dataclasses.replace(self.reports, times=number))

    def apart(self) -> list[ReportBatch]:
        """One batch per collection, in order, with views of the columns."""
        joined = self.table[self.owners].tobytes()
        keys = [joined[at : at + FINGERPRINT_BYTES] for at in range(0, len(joined), FINGERPRINT_BYTES)]
        return self.reports.split(keys, self.sizes)

    def numbers_in(self, catalog: CollectionCatalog) -> np.ndarray:
        """(R,) int64, the numbers of the collections in a catalog that has them all."""
        if self.table is catalog.table:
            return self.owners
        prefixes = np.ascontiguousarray(self.table[self.owners, :PREFIX_BYTES]).view("<u8")[:, 0]
        return catalog.numbers(prefixes)

    def between(self, bounds: list[int]) -> list[MixedReports]:
        """The reports of the collections from each of these positions in ``owners`` to the next one."""
        ends = np.cumsum(self.sizes)
        return [
            MixedReports(
                self.table,
                self.owners[first:last],
                self.sizes[first:last],
                self.reports[int(ends[first] - self.sizes[first]) : int(ends[last - 1])],
            )
            for first, last in itertools.pairwise(bounds)
        ]


class Batches(Sequence[ReportBatch]):
    """Reports as batches of one collection each, which are made when they are first asked for.

    Args:
        parts: the same reports together.
    """

    def __init__(self, parts: list[MixedReports]):
        self.parts = parts

    @functools.cached_property
    def _apart(self) -> list[ReportBatch]:
        return [batch for part in self.parts for batch in part.apart()]

    def __len__(self) -> int:
        return sum(len(part.owners) for part in self.parts)

    def __getitem__(self, at: Any) -> Any:
        return self._apart[at]

    def __eq__(self, other: object) -> bool:
        return self._apart == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # holds arrays: equal by content, not hashable
