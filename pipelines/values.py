"""Reading people's values from a CSV file. Errors name the line, never its content: it may be a secret."""

from __future__ import annotations

import contextlib
import csv
import datetime
import decimal
import gzip
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class ValuesFile:
    """A CSV file, compressed if its name ends in .gz: a column of values, optional column ``event_time``.

    Args:
        path: of the file.
        column: its name.

    Raises:
        OSError: if it cannot be opened.
        SpecError: if its first line does not name the column, names one twice, or names one nearly.
    """

    def __init__(self, path: str, column: str = "value"):
        self.path = path
        self.column = column
        with self._open() as rows:
            self._columns(rows)

    def read(self, rows_at_once: int) -> Iterator[tuple[list[str], np.ndarray | None]]:
        """Values and event times (milliseconds, None without the column), some rows at a time.

        Raises:
            SpecError: naming the line.
        """
        values: list[str] = []
        times: list[int] = []
        with self._open() as rows:
            value_at, time_at = self._columns(rows)
            width = 1 + max(value_at, -1 if time_at is None else time_at)
            for row in rows:
                if not row:
                    continue
                where = f"{self.path} line {rows.line_num}"
                if len(row) < width:
                    raise SpecError(f"{where} must have all columns of the header, got {len(row)}")
                values.append(row[value_at])
                if time_at is not None:
                    times.append(milliseconds(row[time_at], where))
                if len(values) >= rows_at_once:
                    yield values, None if time_at is None else np.array(times, np.int64)
                    values, times = [], []
        if values:
            yield values, None if time_at is None else np.array(times, np.int64)

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        opener: Any = gzip.open if self.path.endswith(".gz") else open
        with opener(self.path, "rt", encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            try:
                yield rows
            except UnicodeDecodeError:
                raise SpecError(f"{self.path} must be UTF-8 text, got other bytes after line {rows.line_num}") from None
            except csv.Error as error:
                raise SpecError(f"{self.path} line {rows.line_num} must be CSV, got a fault: {error}") from None
            except (gzip.BadGzipFile, EOFError, zlib.error):
                raise SpecError(f"{self.path} must be a whole gzip file, got another or a broken one") from None

    def _columns(self, rows: Any) -> tuple[int, int | None]:
        header: list[str] = next(rows, [])
        for column in (
            self.column,
            "event_time",
        ):  # a misspelt event_time would otherwise be ignored, and a month become one moment
            alike = [name for name in header if _letters(name) == _letters(column)]
            if alike not in ([], [column]):
                raise SpecError(f"{self.path} must name the column {column} once and like this, got {describe(alike)}")
        if self.column not in header:
            raise SpecError(
                f"{self.path} must have a column named {self.column} in its first line, "
                f"got {len(header)} other column(s)"
            )
        return header.index(self.column), header.index("event_time") if "event_time" in header else None


def _letters(name: str) -> str:
    """A column's name without what people vary: case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]", "", name).lower()


def milliseconds(text: str, where: str) -> int:
    """Milliseconds since 1970 of RFC 3339 text (UTC if it has no offset) or of a number of seconds.

    Raises:
        SpecError: beginning with ``where``.
    """
    try:
        if re.fullmatch(r"[+-]?[0-9]{1,15}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?", text):
            result = int((decimal.Decimal(text) * 1000).to_integral_value(decimal.ROUND_FLOOR))
        else:
            moment = datetime.datetime.fromisoformat(re.sub("[Zz]$", "+00:00", text))
            moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)
            result = (moment - _EPOCH) // datetime.timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise SpecError(f"{where}: event_time must be RFC 3339 or seconds since 1970, got neither") from None
    if not MIN_EVENT_TIME <= result < MAX_EVENT_TIME:
        raise SpecError(f"{where}: event_time must lie in the years 1900 to 9998, got another year")
    return result
