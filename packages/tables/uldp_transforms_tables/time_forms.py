"""Forms of times in tables: regular expressions for texts, and the units of plain numbers since 1970."""

from __future__ import annotations

import dataclasses
import decimal
import functools
import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError

DAY = 86_400_000

_OFFSET = "(?:[Zz]|UTC|GMT|utc|gmt|[+-][0-9]{2}(?::?[0-9]{2})?|(?:UTC|GMT)[+-][0-9]{1,2}(?::[0-9]{2})?)"
_ISO = (
    r"(?P<year>[0-9]{4})[-/](?P<month>[0-9]{2})[-/](?P<day>[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,30}))?)?"
    rf" ?(?P<offset>{_OFFSET})?)?"
)
_PARTS = {
    "Y": "(?P<year>[0-9]{4})",
    "y": "(?P<short_year>[0-9]{2})",
    "m": "(?P<month>[0-9]{1,2})",
    "d": "(?P<day>[0-9]{1,2})",
    "j": "(?P<day_of_year>[0-9]{1,3})",
    "H": "(?P<hour>[0-9]{1,2})",
    "I": "(?P<half_hour>[0-9]{1,2})",
    "M": "(?P<minute>[0-9]{1,2})",
    "S": "(?P<second>[0-9]{1,2})",
    "f": "(?P<fraction>[0-9]{1,30})",
    "p": "(?P<half>[AaPp][Mm])",
    "b": "(?P<month_name>[A-Za-z]+)",
    "B": "(?P<month_name>[A-Za-z]+)",
    "a": "[A-Za-z]+",
    "A": "[A-Za-z]+",
    "z": f"(?P<offset>{_OFFSET})",
}
"""Parts of a format of ``strptime``, as Python reads them in English."""

_MONTHS = tuple(
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_NUMBER = r"^[+-]?[0-9]{1,22}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,2})?$"
_FAR = 1e17  # milliseconds from 1970, farther than all years that are allowed
_ROUGH_DIGITS = 6
_CIVIL_YEAR = 1970


def _pattern_of(piece: str) -> str:
    if piece.isspace():
        return r"\s+"
    return re.escape(piece.removeprefix("%")) if piece == "%%" or piece[0] != "%" else _PARTS[piece[1:]]


class Read(NamedTuple):
    """Times that were read.

    Attributes:
        milliseconds: (n,) int64 since 1970, rounded down; on local clocks if ``local``.
        local: (n,) bool: without an offset from UTC.
        fits: (n,) bool: the text has this form, and is a day of the calendar.
    """

    milliseconds: np.ndarray
    local: np.ndarray
    fits: np.ndarray


@dataclasses.dataclass(frozen=True)
class TextForm:
    """Texts that match a regular expression, whose named groups are parts of a time."""

    pattern: str

    @classmethod
    def of_format(cls, form: str) -> TextForm:
        """The form of a format of ``strptime``.

        Raises:
            SpecError: if it has other parts than texts and ``_PARTS``, one of them twice, no year, or 12 hours of
            which it does not say the half of the day.
        """
        pieces = re.findall(r"%.|\s+|[^%\s]+|%$", form, re.DOTALL)
        parts = [piece[1:] for piece in pieces if piece.startswith("%") and piece != "%%"]
        groups = [group for part in parts for group in re.findall(r"<(\w+)>", _PARTS.get(part, ""))]
        known = all(part in _PARTS for part in parts) and len(set(groups)) == len(groups)
        is_whole = bool({"year", "short_year"} & set(groups)) and ("half_hour" in groups) is ("half" in groups)
        if not known or not is_whole:
            letters = " ".join("%" + letter for letter in _PARTS)
            allowed = f"texts and {letters} (each once), with %Y or %y, and %I and %p together"
            units = ", ".join(UNITS)
            raise SpecError(f"--time_format must have only {allowed}, or be one of {units}, got {describe(form)}")
        return cls("".join(map(_pattern_of, pieces)))

    def read(self, texts: pa.Array) -> Read:
        """Read n texts."""
        found = pc.extract_regex(texts, f"^(?:{self.pattern})$")
        matched = np.asarray(pc.fill_null(pc.is_valid(found), False))
        names = {field.name for field in found.type}

        def number(name: str, default: int = 0) -> np.ndarray:
            """(n,) int64: the digits of a group; the default where there are none."""
            if name not in names:
                return np.full(len(texts), default, dtype=np.int64)
            digits = pc.fill_null(found.field(name), "")
            return np.asarray(pc.if_else(pc.equal(digits, ""), str(default), digits).cast(pa.int64()))

        def text(name: str) -> pa.Array:
            return pc.fill_null(found.field(name), "") if name in names else pa.array([""] * len(texts), pa.string())

        years = number("year", _CIVIL_YEAR)
        if "short_year" in names:
            years = (short := number("short_year")) + np.where(short < 69, 2000, 1900)
        months = number("month", 1)
        if "month_name" in names:
            months = _month_of(text("month_name"))
        days, fits = _days(years, months, number("day", 1))
        if "day_of_year" in names:
            days, fits = _days_of_year(years, number("day_of_year", 1))
        hours, hours_fit = number("hour"), np.ones(len(texts), dtype=bool)
        if "half_hour" in names:
            half = number("half_hour")
            hours_fit = (half >= 1) & (half <= 12)
            hours = half % 12 + 12 * np.asarray(pc.equal(pc.utf8_lower(text("half")), "pm"))
        minutes, seconds = number("minute"), number("second")
        fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(text("fraction"), 0, 3), 3, "0").cast(pa.int64())
        ahead, local, offsets_fit = _offsets(text("offset"))
        within = (hours < 24) & (minutes < 60) & (seconds < 60)
        moments = days * DAY + ((hours * 60 + minutes) * 60 + seconds) * 1000 + np.asarray(fraction) - ahead
        return Read(moments, local, matched & fits & hours_fit & within & offsets_fit)


@dataclasses.dataclass(frozen=True)
class Unit:
    """Plain numbers since a moment.

    Attributes:
        milliseconds: of one, as a decimal text.
        start: what 0 is, in milliseconds since 1970.
        what: these numbers, for messages.
        is_local: whether they are times of local clocks.
        rounded: to the nearest millisecond, because the unit has no exact ones; else down.
    """

    milliseconds: str
    what: str
    start: int = 0
    is_local: bool = False
    rounded: bool = False

    def read(self, texts: pa.Array) -> Read:
        """Read n texts; numbers that are farther away than any year that is allowed are so in the result."""
        fits = np.asarray(pc.fill_null(pc.match_substring_regex(texts, _NUMBER), False))
        numbers = pc.if_else(pa.array(fits), texts, "0")
        about = np.asarray(numbers.cast(pa.float64())) * float(self.milliseconds)
        about = np.clip(np.round(about, _ROUGH_DIGITS), -_FAR, _FAR)  # floats: 1.001 s are 1000.9999999999999 ms
        rough = np.asarray(pc.match_substring_regex(numbers, "[eE]")) | (np.abs(about) >= _FAR)
        exact = _cut(pc.if_else(pa.array(rough), "0", numbers)).cast(pa.decimal256(60, 30))
        scaled = pc.multiply(exact, pa.scalar(decimal.Decimal(self.milliseconds)))
        to_whole = np.rint if self.rounded else np.floor
        whole = np.asarray((pc.round(scaled) if self.rounded else pc.floor(scaled)).cast(pa.int64()))
        moments = np.where(rough, to_whole(about).astype(np.int64), whole) + self.start
        return Read(moments, np.full(len(texts), self.is_local), fits)


UNITS = {
    "seconds": Unit("1000", "seconds since 1970"),
    "milliseconds": Unit("1", "milliseconds since 1970"),
    "microseconds": Unit("0.001", "microseconds since 1970"),
    "nanoseconds": Unit("0.000001", "nanoseconds since 1970"),
    "excel": Unit("86400000", "serial days of a spreadsheet", start=-25_569 * DAY, is_local=True, rounded=True),
}
"""Words of ``--time_format``."""

SECONDS = UNITS["seconds"]
USUAL = (
    TextForm(_ISO),
    TextForm.of_format("%d/%b/%Y:%H:%M:%S %z"),
    TextForm.of_format("%Y/%m/%d %I:%M:%S %p %z"),
)
"""Forms of texts that need no option: RFC 3339 and its relatives, that of web servers' logs, and that of Google
Forms."""


def form_of(text: str) -> TextForm | Unit:
    """What ``--time_format`` names; raises SpecError."""
    return UNITS.get(text) or TextForm.of_format(text)


def _days(years: np.ndarray, months: np.ndarray, days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) days since 1970-01-01, and whether there is such a day."""
    count = (years - _CIVIL_YEAR) * 12 + months - 1
    first, after = (_first_days(count + step) for step in (0, 1))
    return first + days - 1, (months >= 1) & (months <= 12) & (days >= 1) & (days <= after - first)


def _days_of_year(years: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, after = (_first_days((years - _CIVIL_YEAR + step) * 12) for step in (0, 1))
    return first + numbers - 1, (numbers >= 1) & (numbers <= after - first)


def _first_days(months: np.ndarray) -> np.ndarray:
    """(n,) days from 1970-01-01 to the first day of a month, counted from January 1970."""
    days: np.ndarray = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return days


def _month_of(names: pa.Array) -> np.ndarray:
    """(n,) number of a month by its English name or its first three letters; 0 for other texts."""
    lower = pc.utf8_lower(names)
    number = np.zeros(len(names), dtype=np.int64)
    for known in (_MONTHS, tuple(month[:3] for month in _MONTHS)):
        places = pc.fill_null(pc.index_in(lower, pa.array(known, pa.string()).cast(lower.type)), -1)
        number = np.maximum(number, np.asarray(places).astype(np.int64) + 1)
    return number


def _offsets(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n,) milliseconds ahead of UTC, whether there is no offset, and whether it is possible."""
    kinds, of = _distinct(texts)
    read = [_offset(kind) for kind in kinds]
    ahead = np.array([0 if one is None else one for one in read], dtype=np.int64)
    local = np.array([kind == "" for kind in kinds], dtype=bool)
    return ahead[of], local[of], np.array([one is not None for one in read], dtype=bool)[of]


def _distinct(texts: pa.Array) -> tuple[list[str], np.ndarray]:
    coded = texts.dictionary_encode()
    return coded.dictionary.to_pylist(), np.asarray(coded.indices).astype(np.int64)


@functools.lru_cache(maxsize=1024)
def _offset(text: str) -> int | None:
    """Milliseconds ahead of UTC; None if there is no such offset."""
    found = re.fullmatch(r"(?:UTC|GMT)?([+-])([0-9]{1,2}):?([0-9]{2})?", text)
    if found is None:
        return 0
    hours, minutes = int(found[2]), int(found[3] or 0)
    return (-1 if found[1] == "-" else 1) * (hours * 60 + minutes) * 60_000 if hours < 24 and minutes < 60 else None


def _cut(numbers: pa.Array) -> pa.Array:
    """Decimal texts without digits that are far beyond a nanosecond."""
    return pc.replace_substring_regex(numbers, r"(\.[0-9]{24})[0-9]+", r"\1")
