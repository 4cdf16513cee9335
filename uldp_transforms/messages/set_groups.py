"""Sets the dimensions that clients cannot know, from what carries a message: headers of a request, or attributes.

This is the only place that turns attributes into groups. It is used at a *door*: where messages come in that anybody
may have sent. What is behind it, such as spool files, is trusted.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from uldp_transforms.ldp.alphabets.dimensions import SETTERS, groups_without, shifts_of
from uldp_transforms.ldp.collection import PREFIX_BYTES, Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages import wire

Attributes = Iterable[tuple[str, str | bytes | None]]
"""Names and texts, or texts in UTF-8; a name may be repeated."""

_HEADERS = (wire.REPORT_HEADER, wire.BATCH_HEADER)


@dataclasses.dataclass(frozen=True)
class SetGroups:
    """Sets dimensions in messages, at one door.

    A report that already states one of these dimensions, or one that a later door sets, gets a cohort number that no
    client has, so that the decoder rejects it (``cohort_range``). Malformed messages are not changed.

    Attributes:
        collections: those of the job.
        door: which of ``SETTERS`` this door is.
        keys: name of a dimension and name of the attribute that gives its text. Without the attribute, or with several
            of this name, the dimension remains ``other``.

    Raises:
        SpecError: if a key is missing, unknown or repeated.
    """

    collections: tuple[Collection, ...]
    door: str
    keys: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        listed = {one.name: None for each in self.collections for one in each.dimensions if one.set_by == self.door}
        given = [name for name, _ in self.keys]
        for name in given:
            if name not in listed:
                known = f"a dimension with set_by {self.door}: {', '.join(listed) or 'the collections have none'}"
                raise SpecError(f"--dimension must name {known}, got {name!r}")
            if given.count(name) > 1:
                raise SpecError(f"--dimension must give each dimension once, got {name!r} twice")
        missing = [name for name in listed if name not in given]
        if missing:
            raise SpecError(f"--dimension must say what gives {missing[0]!r} (set_by {self.door}), got none")

    @property
    def is_needed(self) -> bool:
        """Whether a collection has a dimension that this door must set or check."""
        return bool(self._doors)

    @functools.cached_property
    def _doors(self) -> dict[bytes, _Door]:
        doors = ((each.fingerprint[:PREFIX_BYTES], _Door(each, self.door, self.keys)) for each in self.collections)
        return {prefix: door for prefix, door in doors if door.names}

    def in_message(self, message: bytes, attributes: Attributes) -> bytes:
        """The message with the dimensions of all its reports set; costs nothing for other collections."""
        start = len(wire.REPORT_HEADER) if message[: len(wire.REPORT_HEADER)] in _HEADERS else 0
        door = self._doors.get(message[start + 1 : start + 1 + PREFIX_BYTES])
        if door is None:
            return message
        if message[start] == wire.REPORT_FORM:
            return _with_cohort(message, start, door, attributes)
        return _with_cohorts(message, start, door, attributes) if message[start] == wire.BATCH_FORM else message


class _Door:
    """What one door does to the reports of one collection."""

    def __init__(self, collection: Collection, door: str, keys: Sequence[tuple[str, str]]):
        place = SETTERS.index(door)
        self.names = [one.name for one in collection.dimensions if SETTERS.index(one.set_by) >= place]
        self._dimensions = collection.dimensions
        self._keys = [(name, key) for name, key in keys if name in self.names]
        self._num_cohorts, self._num_strata = collection.num_cohorts, collection.num_strata
        self._is_free = groups_without(collection.dimensions, self.names)

    def stated(self, cohorts: np.ndarray, attributes: Attributes) -> np.ndarray:
        """Cohort numbers (n,) int64 with the dimensions set, from those that reports state."""
        known = (cohorts >= 0) & (cohorts < self._num_strata)
        free = self._is_free[np.where(known, cohorts, 0) // self._num_cohorts] & known
        return np.where(free, cohorts + self._num_cohorts * self._shift(attributes), self._num_strata)

    def _shift(self, attributes: Attributes) -> int:
        found: dict[str, list[str]] = {key: [] for _, key in self._keys}
        for key, text in attributes:
            if key in found:
                content = text if isinstance(text, bytes) else (text or "").encode("utf-8", "replace")
                found[key].append(content.decode("utf-8", "replace"))
        columns = {name: found[key] for name, key in self._keys if len(found[key]) == 1}
        return int(shifts_of(self._dimensions, columns, 1)[0])


def _with_cohort(message: bytes, start: int, door: _Door, attributes: Attributes) -> bytes:
    _, begin, bad_time = wire.read_long(message, start + wire.FIXED_BYTES)
    cohort, end, bad_cohort = wire.read_long(message, begin)
    if bad_time is not Reason.ACCEPTED or bad_cohort is not Reason.ACCEPTED:
        return message
    stated = int(door.stated(np.array([cohort], dtype=np.int64), attributes)[0])
    return message[:begin] + wire.written_long(stated) + message[end:]


def _with_cohorts(message: bytes, start: int, door: _Door, attributes: Attributes) -> bytes:
    _, fields, _, fault = wire.split_batch(message, start)
    if fault is not Reason.ACCEPTED or len(fields[0]) % 2:
        return message
    _, begin, _ = wire.read_long(message, start + 1 + PREFIX_BYTES)
    cohorts = np.frombuffer(fields[0], dtype="<u2").astype(np.int64)
    stated = door.stated(cohorts, attributes).astype("<u2").tobytes()
    return message[:begin] + stated + message[begin + len(stated) :]


def set_in_batch(collection: Collection, batch: ReportBatch, columns: Mapping[str, Sequence[str]]) -> ReportBatch:
    """Reports as they are behind all doors: with a column of n texts for each dimension that clients do not set."""
    shifts = shifts_of(collection.dimensions, columns, len(batch))
    groups = collection.groups_of(batch.cohorts) + shifts
    stated = collection.with_groups(collection.without_groups(batch.cohorts), groups)
    return dataclasses.replace(batch, cohorts=stated)
