"""Event times in input tables: conversion of numbers, RFC 3339 texts and timestamps to milliseconds since 1970."""

from __future__ import annotations

import decimal
import functools
import re
import zoneinfo
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

Place = Callable[[int], str]
"""Function that describes the place of a row, for messages."""

_SECONDS = r"^[+-]?[0-9]{1,15}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$"
_LOCAL = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,30})?)?)?"
_KNOWN_PARTS = "YymdHIMSpbBaAj"
_PARTS_OF_FORMAT = rf"(?=.*%[Yy])([^%]|%[{_KNOWN_PARTS}])*"
_OFFSET = r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
_FAR = MAX_EVENT_TIME  # seconds: farther than all years that are allowed, and in milliseconds still 64 bits
_WEEK = 7 * 86_400_000


class Clock:
    """Reads a column of times.

    Args:
        column: name of the column, for messages.
        timezone: time zone for times without an offset from UTC, such as "Europe/Berlin"; None: such times are refused.
        form: format of texts, such as "%d.%m.%Y %H:%M", as of ``strptime``; None: RFC 3339 or seconds since 1970.

    Raises:
        SpecError: if the time zone or a part of the format is unknown.
    """

    def __init__(self, column: str, timezone: str | None = None, form: str | None = None):
        try:
            zoneinfo.ZoneInfo(timezone or "UTC")
        except (KeyError, ValueError, OSError):
            sentence = '--timezone must be the name of a time zone such as "Europe/Berlin"'
            raise SpecError(f"{sentence}, got {describe(timezone)}") from None
        if form is not None and not re.fullmatch(_PARTS_OF_FORMAT, form):
            allowed = f"texts and {' '.join('%' + letter for letter in _KNOWN_PARTS)}, with %Y or %y"
            raise SpecError(f"--time_format must have only {allowed}, got {describe(form)}")
        self._column, self._timezone, self._form = column, timezone, form

    def milliseconds(self, times: pa.Array, place: Place) -> np.ndarray:
        """(n,) int64 milliseconds since 1970 UTC, rounded down.

        Args:
            times: n numbers of seconds since 1970, RFC 3339 texts or timestamps.
            place: describes the place of a row, for the message.

        Raises:
            SpecError: for the first invalid time, or local time that does not exist or is ambiguous; names its place.
        """
        missing = np.asarray(pc.is_null(times))
        if missing.any():
            raise self._no_time(place(int(missing.argmax())), "none")
        if pa.types.is_timestamp(times.type):
            result = self._of_timestamps(_to_milliseconds(times), place)
        elif self._form is not None:
            result = self._of_format(times.cast(pa.string()), self._form, place)
        else:
            result = self._of_texts(times.cast(pa.string()), place)
        outside = (result < MIN_EVENT_TIME) | (result >= MAX_EVENT_TIME)
        if outside.any():
            where = place(int(outside.argmax()))
            raise SpecError(f"{where}: {self._column} must lie in the years 1900 to 9998, got another year")
        return result

    def _of_format(self, texts: pa.Array, form: str, place: Place) -> np.ndarray:
        """Event times from local times of a given format."""
        times = pc.strptime(texts, format=form, unit="s", error_is_null=True)
        wrong = np.asarray(pc.is_null(times))
        if wrong.any():
            where = place(int(wrong.argmax()))
            raise SpecError(f"{where}: {self._column} must have the format {form} of --time_format, got another one")
        return self._of_timestamps(times.cast(pa.timestamp("ms")), place)

    def _of_texts(self, texts: pa.Array, place: Place) -> np.ndarray:
        result = np.zeros(len(texts), np.int64)
        others = np.ones(len(texts), bool)
        for pattern, read in _FORMS.items():
            chosen = np.asarray(pc.match_substring_regex(texts, pattern))
            rows = np.flatnonzero(chosen)
            if not len(rows):
                continue
            some = _converted(texts.take(rows), read)
            if isinstance(some, int):
                raise self._no_time(place(int(rows[some])), "neither")
            result[rows] = self._of_timestamps(some, functools.partial(_place_of, place, rows))
            others &= ~chosen
        if others.any():
            raise self._no_time(place(int(others.argmax())), "neither")
        return result

    def _of_timestamps(self, times: pa.Array, place: Place) -> np.ndarray:
        """Event times from timestamps with a time zone or, without one, from local times."""
        if times.type.tz is None:
            if self._timezone is None:
                allowed = "have an offset from UTC, such as Z or +01:00, unless --timezone is given"
                raise SpecError(f"{place(0)}: {self._column} must {allowed}, got none")
            times = _converted(times, lambda part: pc.assume_timezone(part, self._timezone))
            if isinstance(times, int):
                allowed = f"have an offset from UTC where clocks are changed, got a time that {self._timezone} has "
                raise SpecError(f"{place(times)}: {self._column} must {allowed}twice or not at all")
        return np.asarray(times.cast(pa.int64())) // _PER_MILLISECOND[times.type.unit]

    def _no_time(self, where: str, got: str) -> SpecError:
        return SpecError(f"{where}: {self._column} must be RFC 3339 or seconds since 1970, got {got}")


def milliseconds(text: str, where: str) -> int:
    """Convert one text as :class:`Clock` does; raises a SpecError that begins with ``where``."""
    return int(Clock("event_time").milliseconds(pa.array([text], pa.string()), lambda _: where)[0])


def _place_of(place: Place, rows: np.ndarray, row: int) -> str:
    return place(int(rows[row]))


def _to_milliseconds(times: pa.Array) -> pa.Array:
    """Timestamps of any unit, rounded down; those of years that are not allowed are moved to the nearest of these."""
    numbers = np.asarray(times.cast(pa.int64()))
    if times.type.unit == "s":
        numbers = np.clip(numbers, -_FAR, _FAR) * 1000
    else:
        numbers = numbers // _PER_MILLISECOND[times.type.unit]
    near = np.clip(numbers, MIN_EVENT_TIME - _WEEK, MAX_EVENT_TIME + _WEEK)
    return pa.array(near).cast(pa.timestamp("ms", times.type.tz))


def _of_seconds(texts: pa.Array) -> pa.Array:
    exact = pc.round(_cut(texts, 12).cast(pa.decimal128(30, 12)), 3, "down")
    return pc.multiply(exact, pa.scalar(decimal.Decimal(1000))).cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))


def _of_moments(texts: pa.Array) -> pa.Array:
    return _cut(texts, 6).cast(pa.timestamp("us", "UTC"))


def _of_clocks(texts: pa.Array) -> pa.Array:
    return _cut(texts, 6).cast(pa.timestamp("us"))


_FORMS = {_SECONDS: _of_seconds, _LOCAL + _OFFSET + "$": _of_moments, _LOCAL + "$": _of_clocks}
_PER_MILLISECOND = {"ms": 1, "us": 1000, "ns": 1_000_000}


def _cut(texts: pa.Array, digits: int) -> pa.Array:
    """Truncate the texts after ``digits`` decimal places, in upper case."""
    return pc.replace_substring_regex(pc.utf8_upper(texts), rf"(\.[0-9]{{{digits}}})[0-9]+", r"\1")


def _converted(array: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.Array | int:
    """The whole array, or the index of the first element that cannot be converted."""

    def attempt(part: pa.Array) -> pa.Array | None:
        try:
            return convert(part)
        except pa.ArrowInvalid:
            return None

    result = attempt(array)
    if result is not None:
        return result
    low, high = 0, len(array)  # all elements before low convert, not all before high do
    for _ in range(high.bit_length()):
        middle = (low + high) // 2
        low, high = (low, middle) if attempt(array.slice(low, middle - low)) is None else (middle, high)
    return low
