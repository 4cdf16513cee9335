"""Event times in tables: the one place that converts texts, numbers, dates and timestamps to milliseconds since
1970."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from uldp_transforms.calendar_windows import moments_of_local, time_zone
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, PLAIN_FROM, PLAIN_TO
from uldp_transforms_tables.cell_texts import MISSING_TEXTS, are_missing, texts_of, values_of
from uldp_transforms_tables.time_forms import DAY, SECONDS, UNITS, USUAL, Read, TextForm, Unit, form_of

Place = Callable[[int], str]
"""Function that describes the place of a row, for messages."""

_USUAL = "be RFC 3339 or seconds since 1970"
_WEEK = 7 * DAY
_PER_MILLISECOND = {"ms": 1, "us": 1000, "ns": 1_000_000}

MISSING, _OTHER, _YEAR, _LOCAL, _NOT_ONCE, _PLAIN = range(1, 7)
"""Faults of times; units that a plain number may have follow."""
_FIRST_UNIT = _PLAIN + 1


class Moments(NamedTuple):
    """Times of n rows.

    Attributes:
        milliseconds: (n,) int64 since 1970 UTC, rounded down.
        faults: (n,) int64, 0 for a valid time; ``Clock.sentence`` describes the others.
    """

    milliseconds: np.ndarray
    faults: np.ndarray


class Clock:
    """Reads a column of times.

    Args:
        column: name of the column, for messages.
        timezone: time zone for times without an offset from UTC, such as "Europe/Berlin"; None: such times are refused.
        form: format of texts, such as "%d.%m.%Y %H:%M", as of ``strptime``, or the unit of plain numbers; None: RFC
            3339 and similar texts, or seconds since 1970 in the years 1990 to 2099.
        any_year: whether plain numbers without ``form`` are seconds of any year.

    Raises:
        SpecError: if the time zone or a part of the format is unknown.
    """

    def __init__(self, column: str, timezone: str | None = None, form: str | None = None, *, any_year: bool = False):
        time_zone(timezone or "UTC", "--timezone")
        self._form: TextForm | Unit | None = None if form is None else form_of(form)
        self._column, self._timezone, self._format, self._any_year = column, timezone, form, any_year

    def milliseconds(self, times: pa.Array, place: Place) -> np.ndarray:
        """(n,) int64 milliseconds since 1970 UTC, rounded down.

        Args:
            times: n numbers, texts, dates or timestamps.
            place: describes the place of a row, for the message.

        Raises:
            SpecError: for the first invalid time, or local time that does not exist or is ambiguous; names its place.
        """
        found = self.read(times)
        if found.faults.any():
            row = int((found.faults != 0).argmax())
            cure = "; --missing skip leaves such rows out" if found.faults[row] == MISSING else ""
            raise SpecError(f"{place(row)}: {self.sentence(int(found.faults[row]))}{cure}")
        return found.milliseconds

    def read(self, times: pa.Array) -> Moments:
        """Convert n times; the invalid ones have a fault.

        Raises:
            SpecError: if the column can hold no times.
        """
        kind = values_of(times)
        if pa.types.is_float32(kind.type) or pa.types.is_float16(kind.type):  # 128 s apart, or more
            raise SpecError(f"column {self._column} must have a type that holds times exactly, got {kind.type}")
        faults = np.zeros(len(times), dtype=np.int64)
        if pa.types.is_timestamp(kind.type) or pa.types.is_date(kind.type):
            faults[np.asarray(kind.is_null())] = MISSING
            read = _of_timestamps(kind)
        else:
            texts = texts_of(times, self._column)
            faults[are_missing(texts, MISSING_TEXTS)] = MISSING
            read = self._of_texts(texts, faults)
        moments = read.milliseconds
        self._fault(faults, (moments < MIN_EVENT_TIME - _WEEK) | (moments >= MAX_EVENT_TIME + _WEEK), _YEAR)
        moments = self._of_local(np.where(faults == 0, moments, 0), read.local, faults)
        self._fault(faults, ~_is_of_years(moments), _YEAR)
        return Moments(np.where(faults == 0, moments, 0), faults)

    def sentence(self, fault: int) -> str:
        """What is wrong with a time, without its place, and the option that cures it."""
        allowed, other = _USUAL, "neither"
        if isinstance(self._form, Unit):
            allowed, other = f"be {self._form.what}, as --time_format {self._format} says", "something else"
        elif self._form is not None:
            allowed, other = f"have the format {self._format} of --time_format", "another one"
        plain = _USUAL if self._any_year else f"{_USUAL} in the years 1990 to 2099"
        sentences = {
            MISSING: f"{allowed}, got none",
            _OTHER: f"{allowed}, got {other}",
            _YEAR: "lie in the years 1900 to 9998, got another year",
            _LOCAL: "have an offset from UTC, such as Z or +01:00, unless --timezone is given, got none",
            _NOT_ONCE: "have an offset from UTC where clocks are changed, got a time that "
            f"{self._timezone} has twice or not at all",
            _PLAIN: f"{plain}, got another number",
        }
        cures = {_PLAIN: f"--time_format names a format, or one of the units {', '.join(UNITS)}"}
        if self._form is None:
            cures[_OTHER] = "--time_format names another form"
        for number, (word, unit) in enumerate(UNITS.items(), _FIRST_UNIT):
            sentences[number] = f"{plain}, got a number that may be {unit.what}"
            cures[number] = f"if so, give --time_format {word}"
        cure = f"; {cures[fault]}" if fault in cures else ""
        return f"{self._column} must {sentences[fault]}{cure}"

    def _of_texts(self, texts: pa.Array, faults: np.ndarray) -> Read:
        if self._form is not None:
            found = self._form.read(texts)
            self._fault(faults, ~found.fits, _OTHER)
            return found
        found = SECONDS.read(texts)
        plain = found.fits
        self._refuse_other_units(texts, found, faults)
        for form in USUAL if not plain.all() else ():
            other = form.read(texts)
            found = Read(*(np.where(other.fits, new, old) for new, old in zip(other, found)))
        self._fault(faults, ~found.fits, _OTHER)
        return found

    def _refuse_other_units(self, texts: pa.Array, found: Read, faults: np.ndarray) -> None:
        """Set the faults of plain numbers that are no seconds of an allowed year, by the unit that they may have."""
        outside = found.fits & ~(_is_of_years if self._any_year else _is_near)(found.milliseconds)
        if not outside.any():
            return
        for number, unit in enumerate(UNITS.values(), _FIRST_UNIT):
            read = unit.read(texts)
            self._fault(faults, outside & read.fits & _is_near(read.milliseconds), number)
        self._fault(faults, outside & _is_of_years(found.milliseconds), _PLAIN)

    def _of_local(self, moments: np.ndarray, local: np.ndarray, faults: np.ndarray) -> np.ndarray:
        """Moments of times, of which some are those of local clocks."""
        rows = np.flatnonzero(local & (faults == 0))
        if not len(rows):
            return moments
        if self._timezone is None:
            faults[rows] = _LOCAL
            return moments
        found, once = moments_of_local(self._timezone, moments[rows])
        faults[rows[~once]] = _NOT_ONCE
        moments = moments.copy()
        moments[rows] = found
        return moments

    @staticmethod
    def _fault(faults: np.ndarray, rows: np.ndarray, fault: int) -> None:
        """Give these rows this fault, unless they already have one."""
        faults[rows & (faults == 0)] = fault


def _is_near(moments: np.ndarray) -> np.ndarray:
    near: np.ndarray = (moments >= PLAIN_FROM) & (moments < PLAIN_TO)
    return near


def _is_of_years(moments: np.ndarray) -> np.ndarray:
    allowed: np.ndarray = (moments >= MIN_EVENT_TIME) & (moments < MAX_EVENT_TIME)
    return allowed


def _of_timestamps(times: pa.Array) -> Read:
    """Timestamps of any unit and dates, rounded down; those of years that are not allowed are moved to the nearest of
    these."""
    is_date = pa.types.is_date(times.type)
    unit = "date" if is_date else times.type.unit
    numbers = np.asarray((times.cast(pa.date32()).cast(pa.int32()) if is_date else times).cast(pa.int64()).fill_null(0))
    if unit in _PER_MILLISECOND:
        moments = numbers // _PER_MILLISECOND[unit]
    else:
        moments = np.clip(numbers, -MAX_EVENT_TIME, MAX_EVENT_TIME) * (DAY if is_date else 1000)
    near = np.clip(moments, MIN_EVENT_TIME - 2 * _WEEK, MAX_EVENT_TIME + 2 * _WEEK)
    local = np.full(len(times), is_date or times.type.tz is None)
    return Read(near, local, np.ones(len(times), dtype=bool))
