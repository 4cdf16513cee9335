"""Navigations from a table: answer, rate and loading time. Rows that cannot be used are left out and counted."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.messages.navigation_line import HIGH, LONGEST, LOW
from uldp_transforms_survey.survey.answer_options import MAX_UNREADABLE
from uldp_transforms_survey.survey.cells import Cells, LeftOut, are_missing, require_column
from uldp_transforms_tables.event_times import Clock
from uldp_transforms_tables.json_table import JsonTable
from uldp_transforms_tables.table import Table

_ANSWERS, _RATES = "write answers as high and low", "write rates such as 0.5"
_DURATIONS = f"write milliseconds from 0 to {LONGEST:,.0f}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns of a table."""

    value: str
    rate: str
    duration: str
    time: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Navigations:
    """The n rows that can be used.

    Attributes:
        high: (n,) bool, whether the answer is "high".
        rates: (n,) float64 in [0, 1), the rate at which the answer is random.
        durations: (n,) float64, milliseconds.
        times: (n,) int64, milliseconds since 1970; empty if no column of times is named.
        num_rows: of the table, with those that are left out.
        left_out: why rows are not among the n.
    """

    high: np.ndarray
    rates: np.ndarray
    durations: np.ndarray
    times: np.ndarray
    num_rows: int
    left_out: tuple[LeftOut, ...]


def read_navigations(
    table: Table,
    name: str,
    columns: Columns,
    timezone: str | None = None,
    time_format: str | None = None,
    max_unreadable: float | None = None,
) -> Navigations:
    """Read a table.

    Args:
        table: the table.
        name: of the table, for errors.
        columns: names of its columns.
        timezone, time_format: see ``Clock``.
        max_unreadable: largest share of the rows that are left out because their content is not understood; None:
            ``MAX_UNREADABLE`` of a table, any of JSON lines, which anybody may have sent.

    Raises:
        OSError: if a file cannot be opened.
        SpecError: if it lacks a column, has one twice, has no rows, or has more rows whose content is not understood;
        or for an unknown time zone or format.
    """
    names, chosen = table.columns(), {name: each for name, each in dataclasses.asdict(columns).items() if each}
    for option, column in chosen.items():
        require_column(name, names, f"--{option}_column", column)
    is_log = isinstance(table, JsonTable)  # whose times are seconds by its definition
    clock = Clock(columns.time or "time", timezone, time_format, any_year=is_log)
    cells = Cells(name, table, list(chosen.values()))
    texts, codes = cells.coded(columns.value)
    cells.leave_out(are_missing(texts)[codes], f"no answer in {columns.value}")
    unknown = np.array([text not in (LOW, HIGH) for text in texts], dtype=bool)
    cells.leave_out(unknown[codes], f"an answer in {columns.value} that is neither high nor low", cure=_ANSWERS)
    high = np.array([text == HIGH for text in texts], dtype=bool)[codes]
    rates = cells.numbers(columns.rate)
    cells.leave_out((rates < 0) | (rates >= 1), f"a rate in {columns.rate} that is not from 0 to below 1", cure=_RATES)
    durations = cells.numbers(columns.duration)
    cells.leave_out(durations < 0, f"a time below 0 in {columns.duration}", cure=_DURATIONS)
    cells.leave_out(durations > LONGEST, f"a time above {LONGEST:,.0f} in {columns.duration}", cure=_DURATIONS)
    times = np.zeros(0, dtype=np.int64) if columns.time is None else cells.moments(columns.time, clock)
    most = (1.0 if is_log else MAX_UNREADABLE) if max_unreadable is None else max_unreadable
    cells.check_unreadable(most, "--max_unreadable", np.ones(len(cells.keep)))
    keep = cells.keep
    return Navigations(
        high=high[keep],
        rates=rates[keep],
        durations=durations[keep],
        times=times[keep] if columns.time else times,
        num_rows=len(keep),
        left_out=tuple(cells.left_out()),
    )
