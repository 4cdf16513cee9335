"""The windows of a collection in order, as arrays: the state that smoothing keeps of their rows.

Rows are not kept, so the state of a stream is a few numbers per value and window.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.model import Model, keeps_memos
from uldp_transforms.ldp.smoothing import Past, Series, Track, judge
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_types import WindowedEstimate
from uldp_transforms.windows import moment_of

PEOPLE_VARIANCE = "people_variance"
"""Column of entries that are no shares: the sampling variance of people, part of their squared standard error."""

_CELLS = ("raw", "variances", "common", "people")
_DAY = 86_400_000
_HOUR = 3_600_000
_VERSION = 5
_PAST = 2
_KEPT = {2: 10, 3: _PAST, 4: _PAST, _VERSION: _PAST}  # numbers per value beside windows and alarm, by version
_STORED = 3  # arrays of cells in bytes, without that of people
_HEAD = struct.Struct("<BI")  # version, length of the description in bytes


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Neighbours:
    """Windows of one collection in order of time: T windows, S values.

    Attributes:
        values: the S values as texts.
        spans: (T, 2) int64, start and end in milliseconds.
        num_reports: (T,) int64, number of reports per window.
        raw, variances, common: (T, S) raw frequencies, squared standard errors, and the part of these that all windows
            share; NaN where a window lacks the value.
        people: (T, S) part of ``variances`` that comes from sampling people; NaN for shares, which imply it.
        gone: end of the last forgotten window, in milliseconds; None if none was forgotten.
        past: (2, S) summary of the forgotten windows: level and spread of ``Series``.
        alarm: state of the alarm after the forgotten windows.
        jump: n times the contribution of one more counted report to an estimate.
        memos: whether clients keep memos, so that windows of the same people have noise in common.
        figures: the same windows with each kind of their figures of numbers in place of values; none of other
            collections.
    """

    values: tuple[str, ...]
    spans: np.ndarray
    num_reports: np.ndarray
    raw: np.ndarray
    variances: np.ndarray
    common: np.ndarray
    people: np.ndarray
    gone: int | None = None
    past: np.ndarray
    alarm: Past
    jump: float
    memos: bool
    figures: tuple[Neighbours, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[WindowedEstimate], jump: float = 0.0, memos: bool = False) -> Neighbours:
        """The windows of rows with numbers, one row per window, in any order."""
        rows = sorted((row for row in rows if has_numbers(row)), key=bounds_of)
        columns = [EntryColumns.of(row.estimates) for row in rows]
        lists = dict.fromkeys(column.values for column in columns)  # usually one list, the same for all windows
        values = tuple(dict.fromkeys(itertools.chain(*lists)))
        cells = np.full((4, len(rows), len(values)), np.nan)
        places = {own: places_of(own, values) for own in lists}
        for t, column in enumerate(columns):
            here = places[column.values]
            cells[0, t, here] = column.column("raw_frequency")
            cells[1, t, here] = np.square(column.column("standard_error"))
            cells[2, t, here] = column.column("common_variance")
            cells[3, t, here] = column.column(PEOPLE_VARIANCE)
        cells[2] = np.where(np.isnan(cells[2]) & ~np.isnan(cells[0]), 0, cells[2])
        spans = list(map(bounds_of, rows))
        return cls(
            values=values,
            spans=np.array(spans, dtype=np.int64).reshape(-1, 2),
            num_reports=np.array([row.num_reports for row in rows], dtype=np.int64),
            raw=cells[0],
            variances=cells[1],
            common=cells[2],
            people=cells[3],
            past=_nothing_known(len(values)),
            alarm=Past.empty(len(values)),
            jump=jump,
            memos=memos,
        )

    def __len__(self) -> int:
        return len(self.spans)

    def series(self) -> Series:
        """The windows as the input of the filter."""
        gaps = self.spans[1:, 0] - self.spans[:-1, 1]
        before = 0 if self.gone is None or not len(self) else int(self.spans[0, 0]) - self.gone
        lengths = self.spans[:, 1] - self.spans[:, 0]
        missing = np.rint(np.append(before, gaps)[: len(self)] / lengths)
        level, spread = self.past
        with np.errstate(invalid="ignore"):
            known = self.variances - np.maximum(self.common, 0)
        times = np.maximum(np.isfinite(self.common).sum(axis=0), 1)
        common = np.maximum(np.nansum(self.common, axis=0) / times, 0)
        return Series(
            raw=self.raw,
            variances=known,
            common=common,
            turnover=2 * common if self.memos else 0.0,
            num_reports=np.maximum(self.num_reports, 1),
            steps=1 + np.maximum(missing, 0).astype(np.int64),
            jump=self.jump,
            level=level,
            spread=spread,
            phases=self._weekdays(),
            people=None if np.isnan(self.people).all() else self.people,
        )

    def _weekdays(self) -> np.ndarray | None:
        """(T,) int64 the weekday of each window, relative to the first; None if windows are not calendar days."""
        lengths = self.spans[:, 1] - self.spans[:, 0]
        if not len(self) or (np.abs(lengths - _DAY) > _HOUR).any():
            return None
        days: np.ndarray = np.rint((self.spans[:, 0] - self.spans[0, 0]) / _DAY).astype(np.int64)
        return days % 7

    # ------------------------------------------------------------------ streams

    def with_window(self, row: WindowedEstimate) -> tuple[Neighbours, int | None]:
        """These windows with that of a row added or replaced, and its position; None if it is already forgotten."""
        one = Neighbours.of([row], self.jump, self.memos)
        start = int(one.spans[0, 0])
        if self.gone is not None and start < self.gone:
            return self, None
        values = self.values if set(one.values) <= set(self.values) else tuple(dict.fromkeys(self.values + one.values))
        mine, other = self._for_values(values), one._for_values(values)
        place = int(np.searchsorted(self.spans[:, 0], start))
        after = place + (place < len(self) and int(self.spans[place, 0]) == start)
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(mine, name)[:place], getattr(other, name), getattr(mine, name)[after:]])
            for name in ("spans", "num_reports", *_CELLS)
        }
        return dataclasses.replace(mine, **joined), place

    def _for_values(self, values: tuple[str, ...]) -> Neighbours:
        if values == self.values:
            return self
        here = places_of(self.values, values)
        wider: dict[str, Any] = {name: np.full((len(self), len(values)), np.nan) for name in _CELLS}
        for name, cells in wider.items():
            cells[:, here] = getattr(self, name)
        past = _nothing_known(len(values))
        past[:, here] = self.past
        alarm = self.alarm.placed(len(values), here)
        return dataclasses.replace(self, values=values, past=past, alarm=alarm, **wider)

    def forget(self, course: Track, alarm_every: float, horizon: int) -> Neighbours:
        """Keep only the last ``horizon`` windows; the track and the alarm provide the summary of the others."""
        surplus = len(self) - horizon
        if surplus <= 0:
            return self
        first, later = self._between(0, surplus), self._between(surplus, len(self))
        return dataclasses.replace(
            later,
            gone=int(self.spans[surplus - 1, 1]),
            past=np.stack([course.level[surplus - 1], course.variance[surplus - 1]]),
            alarm=judge(first.series(), alarm_every, self.alarm).past,
        )

    def _between(self, begin: int, end: int) -> Neighbours:
        """A range of the windows, with the summary of older ones."""
        names = ("spans", "num_reports", *_CELLS)
        some: dict[str, Any] = {name: getattr(self, name)[begin:end] for name in names}
        return dataclasses.replace(self, **some)

    def to_bytes(self) -> bytes:
        """Version, a JSON description, then the arrays, little-endian."""
        told = {"values": self.values, "windows": len(self), "gone": self.gone, "jump": self.jump}
        told |= {"memos": True} if self.memos else {}
        stored = _CELLS[:-1] if np.isnan(self.people).all() else _CELLS
        told |= {"cells": len(stored)} if len(stored) > _STORED else {}
        figures = [kind.to_bytes() for kind in self.figures]
        told |= {"figures": list(map(len, figures))} if figures else {}
        head = json.dumps(told).encode()
        whole = np.concatenate([self.spans.ravel(), self.num_reports]).astype("<i8").tobytes()
        cells = np.concatenate([self.past, *(getattr(self, name) for name in stored)]).astype("<f8").tobytes()
        return _HEAD.pack(_VERSION, len(head)) + head + whole + cells + self.alarm.to_bytes() + b"".join(figures)

    @classmethod
    def from_bytes(cls, encoded: bytes) -> Neighbours:
        """Decode the bytes of ``to_bytes``, also of older versions, whose alarm starts anew."""
        version, length = _HEAD.unpack_from(encoded)
        if version not in _KEPT:
            raise ValueError(f"Neighbours reads versions {min(_KEPT)} to {_VERSION}, got version {version}")
        body = _HEAD.size + length
        told = json.loads(encoded[_HEAD.size : body])
        t, values = told["windows"], tuple(told["values"])
        kept, stored = _KEPT[version], told.get("cells", _STORED)
        rows, end = kept + stored * t, body + 24 * t
        whole = np.frombuffer(encoded, "<i8", 3 * t, body).astype(np.int64)
        cells = np.frombuffer(encoded, "<f8", rows * len(values), end).reshape(rows, -1).astype(np.float64)
        past, *parts = np.split(cells, [kept + t * place for place in range(stored)])
        if stored == _STORED:
            parts.append(np.full((t, len(values)), np.nan))
        rest = encoded[end + 8 * rows * len(values) :]
        return cls(
            values=values,
            spans=whole[: 2 * t].reshape(t, 2),
            num_reports=whole[2 * t :],
            **dict(zip(_CELLS, parts)),
            gone=told["gone"],
            past=past[:_PAST],
            alarm=Past.from_bytes(rest, len(values)) if version == _VERSION else Past.empty(len(values)),
            jump=told["jump"],
            memos=told.get("memos", False),
            figures=tuple(map(cls.from_bytes, _last_parts(encoded, told.get("figures", ())))),
        )


def _last_parts(encoded: bytes, lengths: Sequence[int]) -> Iterator[bytes]:
    """The last parts of the bytes, with these lengths."""
    begin = len(encoded) - sum(lengths)
    for length in lengths:
        yield encoded[begin : begin + length]
        begin += length


def jump_of(model: Model) -> float:
    """Maximum of n times the contribution of one more counted report to an estimate; 0 if unknown."""
    return model.mechanism.largest_jump


def traits_of(models: Iterable[Model]) -> tuple[float, bool]:
    """What smoothing needs to know of a collection, or of the versions of a question: the largest ``jump_of``, and
    whether any clients keep memos.
    """
    found = [(jump_of(model), keeps_memos(model)) for model in models]
    return max(jump for jump, _ in found), any(memos for _, memos in found)


def has_numbers(row: WindowedEstimate) -> bool:
    """Whether a row has numbers that can be smoothed."""
    return row.status == "ok" and bool(row.estimates) and bool(row.num_reports) and row.window_start is not None


def bounds_of(row: WindowedEstimate) -> tuple[int, int]:
    """Start and end of the window of a row, in milliseconds."""
    assert row.window_start is not None and row.window_end is not None, "rows without windows take no part"
    return moment_of(row.window_start), moment_of(row.window_end)


def _nothing_known(size: int) -> np.ndarray:
    past = np.zeros((_PAST, size))
    past[1] = 1
    return past


def places_of(own: tuple[str, ...], values: tuple[str, ...]) -> Any:
    """Positions of some values among all values; usually these are all of them, in the same order."""
    if own == values:
        return slice(None)
    places = {value: place for place, value in enumerate(values)}
    return [places[value] for value in own]
