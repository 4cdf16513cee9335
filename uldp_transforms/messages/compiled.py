"""The compiled splitter of single reports, if it is installed. No Beam.

It only accepts: messages that it does not take are judged by ``MessageDecoder`` as if it were not there. So there is
one source of reasons, and results do not depend on it.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from uldp_transforms.ldp.reports import ID_BYTES
from uldp_transforms.messages import native_module, wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

_MIN_BITS, _MAX_BITS = 1, 24


class Split(NamedTuple):
    """Single reports with cohorts and times in range, sorted by collection, and the messages that are not among them.

    Attributes:
        owners, sizes: (R,) int64, numbers of the collections that have reports, increasing, and how many they have.
        cohorts: (n,) uint16.
        event_times: (n,) int64, milliseconds.
        report_ids: (n, 16) uint8.
        payloads: uint8, the payloads of all reports, joined.
        message: (n,) int64, position of the message of each report.
        rest: (m,) int64, positions of all other messages, increasing.
    """

    owners: np.ndarray
    sizes: np.ndarray
    cohorts: np.ndarray
    event_times: np.ndarray
    report_ids: np.ndarray
    payloads: np.ndarray
    message: np.ndarray
    rest: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Splitter:
    """Splits single reports of the collections of a catalog.

    Args:
        catalog: the collections of the job.
    """

    catalog: CollectionCatalog

    @functools.cached_property
    def _tables(self) -> tuple[Any, ...]:
        """Arguments after the messages: prefixes in order, their numbers, where the prefixes with each first bits
        begin, sizes and strata by number; then the number of other bits, the header and the limits."""
        catalog = self.catalog
        bits = min(max(len(catalog).bit_length(), _MIN_BITS), _MAX_BITS)
        firsts = catalog.prefixes >> np.uint64(64 - bits)
        bounds = np.searchsorted(firsts, np.arange((1 << bits) + 1, dtype=np.uint64))
        arrays = (catalog.by_prefix, bounds, catalog.payload_sizes, catalog.strata)
        return (
            catalog.prefixes.astype(np.uint64).tobytes(),
            *(array.astype(np.int64).tobytes() for array in arrays),
            64 - bits,
            wire.REPORT_HEADER,
            wire.MAX_MESSAGE_BYTES,
            MIN_EVENT_TIME,
            MAX_EVENT_TIME,
        )

    def split(self, messages: list[bytes]) -> Split | None:
        """Split the messages; None if the compiled module is not there."""
        module = native_module.native()
        if module is None:
            return None
        columns = module.split_reports(messages, *self._tables)
        arrays: list[np.ndarray] = [np.frombuffer(column, dtype) for column, dtype in zip(columns, _DTYPES)]
        arrays[4] = arrays[4].reshape(-1, ID_BYTES)
        return Split(*arrays)


_DTYPES: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, ("i8", "i8", "u2", "i8", "u1", "u1", "i8", "i8")))
