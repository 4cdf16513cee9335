"""The compiled splitter of single reports, if it is installed. No Beam.

It only accepts: messages that it does not take are judged by ``MessageDecoder`` as if it were not there. So there is
one source of reasons, and results do not depend on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from uldp_transforms.ldp.reports import ID_BYTES
from uldp_transforms.messages import native_module, wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.joined_messages import JoinedMessages
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

_MIN_BITS, _MAX_BITS = 1, 24


class Split(NamedTuple):
    """Single reports with cohorts and times in range, sorted by collection, and the messages that are not among them.

    Payloads are valid if the ``tail`` of their collection in the catalog says which are; others are not checked.

    Attributes:
        owners, sizes: (R,) int64, numbers of the collections that have reports, increasing, and how many they have.
        cohorts: (n,) uint16.
        event_times: (n,) int64, milliseconds.
        report_ids: (n, 16) uint8.
        payloads: uint8, the payloads of all reports, joined.
        message: (n,) int64, position of the message of each report.
        rest: (m,) int64, positions of all other messages, increasing.
        lowest, highest: earliest and latest event time; not defined if n = 0.
    """

    owners: np.ndarray
    sizes: np.ndarray
    cohorts: np.ndarray
    event_times: np.ndarray
    report_ids: np.ndarray
    payloads: np.ndarray
    message: np.ndarray
    rest: np.ndarray
    lowest: int
    highest: int


@dataclasses.dataclass(eq=False)
class Splitter:
    """Splits single reports of the collections of a catalog.

    Args:
        catalog: the collections of the job.
    """

    catalog: CollectionCatalog

    def __post_init__(self) -> None:
        self._module: Any = None
        self._tables: Any = None

    def __reduce__(self) -> tuple[type[Splitter], tuple[CollectionCatalog]]:
        return Splitter, (self.catalog,)  # tables belong to a process

    def split(self, messages: Sequence[bytes]) -> Split | None:
        """Split a list of messages or ``JoinedMessages``; None if the compiled module is not there."""
        module = native_module.native()
        if module is None:
            return None
        if module is not self._module:
            self._module, self._tables = module, module.new_catalog(*tables_of(self.catalog))
        if type(messages) is list:
            found = module.split_reports(self._tables, messages)
        else:
            assert isinstance(messages, JoinedMessages), "MessageDecoder.decode"
            found = module.split_joined(self._tables, messages.data, messages.ends)
        owners, sizes, cohorts, times, ids, payloads, message, rest = map(np.frombuffer, found, _DTYPES)
        ids = ids.reshape(-1, ID_BYTES)
        return Split(owners, sizes, cohorts, times, ids, payloads, message, rest, found[-2], found[-1])


def report_ends(count: int, block: bytes) -> bytes | None:
    """The end of each of the single reports of a block of an Avro file, as int64; None if the block is not exactly
    ``count`` canonical reports, or the compiled module is not there."""
    module = native_module.native()
    return None if module is None else module.report_ends(block, count)


_DTYPES: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, ("i8", "i8", "u2", "i8", "u1", "u1", "i8", "i8")))


def tables_of(catalog: CollectionCatalog) -> tuple[Any, ...]:
    """Arguments of ``new_catalog``: prefixes in order and their numbers; payload sizes, strata and both columns of
    tails by number; where the prefixes with each first bits begin; then the number of other bits, the header and the
    limits.
    """
    bits = min(max(len(catalog).bit_length(), _MIN_BITS), _MAX_BITS)
    firsts = catalog.prefixes >> np.uint64(64 - bits)
    bounds = np.searchsorted(firsts, np.arange((1 << bits) + 1, dtype=np.uint64))
    arrays = (catalog.by_prefix, catalog.payload_sizes, catalog.strata, *catalog.tails.T, bounds)
    return (
        catalog.prefixes.astype(np.uint64).tobytes(),
        *(array.astype(np.int64).tobytes() for array in arrays),
        64 - bits,
        wire.REPORT_HEADER,
        wire.MAX_MESSAGE_BYTES,
        MIN_EVENT_TIME,
        MAX_EVENT_TIME,
    )
