"""Records of Confluent's client as arrays. No consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from uldp_transforms.messages.joined_messages import JoinedMessages, join_singles
from uldp_transforms.messages.set_groups import SetGroups
from uldp_transforms.messages.wire import REPORT_FORM
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

_SINGLE = bytes([REPORT_FORM])


class Polled(NamedTuple):
    """Polled records, in order of offset within each partition.

    Attributes:
        values: n messages; empty if a record has no value.
        partitions: (n,) int64.
        offsets: (n,) int64; compacted topics and transactions have gaps.
        times: (n,) int64, milliseconds since 1970 UTC.
    """

    values: list[bytes] | JoinedMessages
    partitions: np.ndarray
    offsets: np.ndarray
    times: np.ndarray

    def before(self, stop: int) -> Polled:
        """The records before an offset, from a single partition."""
        number = int(np.searchsorted(self.offsets, stop))
        return Polled(self.values[:number], *(column[:number] for column in self[1:]))

    def last(self) -> np.ndarray:
        """Positions (P,) of the last record of each partition that has one."""
        found = np.full(1 + int(self.partitions.max(initial=-1)), -1)
        found[self.partitions] = np.arange(len(self.partitions))  # of equal indices, the last one counts
        return found[found >= 0]


class Columns:
    """Takes the records of several calls of a consumer.

    Args:
        message: the client's class of records. Its methods are mapped over records, which takes a fifth of the time
            that a look-up of the method for each record does.
        kind: the kind of times that records must have, as a number of the client.
        set_groups: sets dimensions from the headers of records; None: no dimension is set here.

    Attributes:
        errors: what was no record.
        other_kinds: of the times of records.
    """

    def __init__(self, message: Any, kind: int, set_groups: SetGroups | None):
        self._message, self._kind, self._set_groups = message, kind, set_groups
        self._values: list[Sequence[bytes]] = []
        self._columns: list[tuple[np.ndarray, ...]] = []
        self.errors: list[Any] = []
        self.other_kinds: set[int] = set()

    def add(self, found: Sequence[Any]) -> None:
        """Take n records and errors."""
        stamps = map(self._message.timestamp, found)
        kinds, times = zip(*stamps) if found else ((), ())
        if kinds.count(self._kind) == len(found):  # an error has no time
            self._add(found, times)
            return
        records = [one for one in found if one.error() is None]
        self.errors += [one for one in found if one.error() is not None]
        self.other_kinds |= {one.timestamp()[0] for one in records} - {self._kind}
        self._add(records, [one.timestamp()[1] for one in records])

    def _add(self, records: Sequence[Any], times: Sequence[int]) -> None:
        if not records:
            return
        values = list(map(self._message.value, records))
        if not all(values):
            values = [value or b"" for value in values]
        if self._set_groups is not None:
            headers = (found or () for found in map(self._message.headers, records))
            values = list(map(self._set_groups.in_message, values, headers))
        is_single = values[0][:1] == _SINGLE  # packed ones are long, so joining them would copy more than it saves
        self._values.append(JoinedMessages.join(values) if is_single else values)
        self._columns.append((*self._places_of(records), np.fromiter(times, np.int64, len(times))))

    def _places_of(self, records: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Partition and offset (n,) of records. Offsets of a partition increase, so none of n consecutive ones needs to
        be asked for but the first and the last one."""
        number, partitions = len(records), list(map(self._message.partition, records))
        first, last = records[0].offset(), records[-1].offset()
        if last - first == number - 1 and partitions.count(partitions[0]) == number:
            return np.full(number, partitions[0]), np.arange(first, last + 1)
        return np.array(partitions), np.fromiter(map(self._message.offset, records), np.int64, number)

    def polled(self) -> Polled | None:
        """All records; None if there are none. Times are limited to those of events, because senders may choose any
        64-bit number."""
        if not self._values:
            return None
        partitions, offsets, times = map(np.concatenate, zip(*self._columns))
        times = np.clip(times, MIN_EVENT_TIME, MAX_EVENT_TIME)
        return Polled(join_singles(self._values), partitions, offsets, times)
